// Registers the tokenizer plugin `tiktoken`.
#include <titan/plugin.h>

#include "tiktoken_tokenizer.h"

using titan::tiktoken::TiktokenOptions;
using titan::tiktoken::TiktokenTokenizer;

TITAN_PLUGIN(plugin) {
  plugin
      .add<TiktokenTokenizer>("tiktoken",
                              "Reads Llama 3's tokenizer.model and other .tiktoken files.")
      .option("file", &TiktokenOptions::file,
              "File in the assets folder; empty: tokenizer.model, original/tokenizer.model or the "
              "one *.tiktoken")
      .option("pattern", &TiktokenOptions::pattern, "Regex that cuts the text into pieces")
      .option("special_tokens", &TiktokenOptions::special_tokens,
              "Special tokens, with ids after the last rank: \"<|a|>\", \"<|r_{0..9}|>\" for ten, "
              "\"<|a|>=100257\" with an id")
      .option("bos", &TiktokenOptions::bos, "Special token before each document; empty: none")
      .option("eos", &TiktokenOptions::eos, "Special token after each document; empty: none")
      .option("pad", &TiktokenOptions::pad, "Special token that pads; empty: none")
      .option("parse_special_tokens", &TiktokenOptions::parse_special_tokens,
              "Text that spells a special token becomes its id");
}
