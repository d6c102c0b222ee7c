// Hashes the behaviour of a tokenizer. Used to check that a run resumes with the same tokenizer.
#pragma once

#include <string>

#include <titan/tokenizer.h>

namespace titan::core {

/// XXH3-128 of the special tokens, the number of ids and the ids of a text with letters, numbers
/// and signs of many kinds: microseconds.
std::string probe_hash(const Tokenizer& tokenizer);

/// Also hashes, for each id, its text and the ids of that text, or that the id is unused, so that
/// any two vocabularies differ. Both hashes are "none" for a NoTokenizer.
std::string behaviour_hash(const Tokenizer& tokenizer);

}  // namespace titan::core
