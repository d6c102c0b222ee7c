// Small inputs that tests make: lines of text, and a tokenizer with one token per byte.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::conformance {

/// Texts with characters of 1 to 4 bytes, blanks, digits, and what tokenizers treat specially.
const std::vector<std::string>& sample_texts();
/// Writes `count` lines {"text": "..."} into a file lines.jsonl in `folder`; returns its path.
std::filesystem::path write_lines(const std::filesystem::path& folder, int count);
/// Writes tokenizer.json, with a token for each byte and an end token, and a chat template into
/// `folder`/tokenizer; returns that folder.
std::filesystem::path write_tokenizer(const std::filesystem::path& folder);
inline constexpr int kSampleVocab = 320;  ///< a size of vocabulary that holds its ids

}  // namespace titan::conformance
