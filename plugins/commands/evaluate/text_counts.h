// What scores divide by: characters, words and bytes as Python counts them. Used by scores.cpp and
// requests.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace titan::evaluation {

/// Without the blanks at its end: Python's str.rstrip.
std::string_view without_blanks_at_end(std::string_view text);
/// Code points of well-formed UTF-8: Python's len.
int64_t num_characters(std::string_view text);
/// Pieces between runs of blanks, empty ones at the ends among them: len(re.split(r"\s+", text)).
int64_t num_words(std::string_view text);

}  // namespace titan::evaluation
