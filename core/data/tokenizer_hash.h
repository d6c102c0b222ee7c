// Tells tokenizers apart by what they do. Used where work goes on that another run has begun.
#pragma once

#include <string>

#include <titan/tokenizer.h>

namespace titan::core {

/// XXH3-128 of the special tokens, the number of ids and the ids of a text with letters, numbers
/// and signs of many kinds: microseconds.
std::string probe_hash(const Tokenizer& tokenizer);

/// The same and, for each id, its text and what that is encoded to, or that no token has it: no two
/// vocabularies are taken for one. Both are "none" where there is no tokenizer.
std::string behaviour_hash(const Tokenizer& tokenizer);

}  // namespace titan::core
