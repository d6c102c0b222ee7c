// Finds a tokenizer's files in a folder: tokenizer.json, else vocab.json or vocab.txt: a byte-level
// BPE as GPT-2's with merges.txt, a WordLevel model without it. The order is torchtitan's. Used by
// the tokenizer.
#pragma once

#include <string>

#include "tokenizer_json.h"

namespace titan::huggingface {

/// Throws an Error that names the folder, or the file and the place in it (component or line).
TokenizerParts read_tokenizer_folder(const std::string& folder);

}  // namespace titan::huggingface
