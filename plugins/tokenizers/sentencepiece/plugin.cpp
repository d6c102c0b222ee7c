// Registers the tokenizer plugin `sentencepiece`.
#include <titan/plugin.h>

#include "sentencepiece_tokenizer.h"

using titan::sentencepiece::SentencepieceOptions;
using titan::sentencepiece::SentencepieceTokenizer;

TITAN_PLUGIN(plugin) {
  plugin
      .add<SentencepieceTokenizer>("sentencepiece",
                                   "Reads model files of SentencePiece, byte-pair and unigram "
                                   "(Llama 2, Mistral, Gemma, T5).")
      .option("file", &SentencepieceOptions::file, "Name of the model file in hf_assets_path");
}
