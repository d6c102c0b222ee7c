// Registers the tokenizer plugin `huggingface`.
#include <titan/plugin.h>

#include "huggingface_tokenizer.h"

using titan::huggingface::HuggingfaceOptions;
using titan::huggingface::HuggingfaceTokenizer;

TITAN_PLUGIN(plugin) {
  plugin
      .add<HuggingfaceTokenizer>(
          "huggingface",
          "Reads tokenizer.json of the BPE families (GPT-2, Llama 2 and 3, "
          "Mistral, Qwen, DeepSeek, GPT-OSS), or vocab.json with merges.txt.")
      .option("parse_special_tokens", &HuggingfaceOptions::parse_special_tokens,
              "Text that spells a special token becomes its id");
}
