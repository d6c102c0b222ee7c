// Validates, repairs and writes UTF-8. Used by the data sets of text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace titan::datasets {

/// The bytes of the character at `at` < `end`; 0 if they are not well-formed UTF-8 (overlong forms,
/// surrogates, above U+10FFFF, truncated).
size_t utf8_length(const char* at, const char* end);

/// The number of bytes of `text` before the first ill-formed one; text.size() if there is none.
size_t valid_utf8_prefix(std::string_view text);

/// Replaces ill-formed bytes by U+FFFD, one for each maximal subpart of a character, as the Unicode
/// standard recommends and Python's errors="replace" does.
std::string replace_invalid_utf8(std::string_view text);

/// Appends a character. `code` is a scalar value: no surrogate, up to U+10FFFF.
void append_utf8(char32_t code, std::string& text);

}  // namespace titan::datasets
