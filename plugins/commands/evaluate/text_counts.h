// Counts characters, words and bytes like Python, for scores per character, word or byte. Used by
// scores.cpp and requests.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace titan::evaluation {

/// Removes blanks at the end: Python's str.rstrip.
std::string_view without_blanks_at_end(std::string_view text);
/// Code points of well-formed UTF-8: Python's len.
int64_t num_characters(std::string_view text);
/// Parts between runs of blanks, including empty ones at the ends: len(re.split(r"\s+", text)).
int64_t num_words(std::string_view text);

}  // namespace titan::evaluation
