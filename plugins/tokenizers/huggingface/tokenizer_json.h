// Reads a tokenizer's folder: tokenizer.json and, if it is there, tokenizer_config.json. The one
// place that knows the files' top level; each component reads its own part.
#pragma once

#include <string>
#include <vector>

#include <titan/tokenizer.h>

#include "added_tokens.h"
#include "bpe.h"
#include "decoder.h"
#include "normalizer.h"
#include "pre_tokenizer.h"

namespace titan::huggingface {

/// Everything that tokenizer.json says, ready to use.
struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  Decoder decoder;
  std::vector<AddedToken> added_tokens;
  SpecialTokens special_tokens;
};

/// Throws an Error that names the folder, the file and the component which is missing, wrong or not
/// supported.
TokenizerParts read_tokenizer_folder(const std::string& folder);

}  // namespace titan::huggingface
