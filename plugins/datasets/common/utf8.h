// Well-formed UTF-8. Used by the data sets of text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace titan::datasets {

/// The bytes of the character at `at` < `end`; 0 when they are not well-formed UTF-8 (overlong
/// forms, surrogates, above U+10FFFF, cut off).
size_t utf8_length(const char* at, const char* end);

/// The number of bytes of `text` before the first ill-formed one; text.size() when there is none.
size_t valid_utf8_prefix(std::string_view text);

/// Puts U+FFFD for each ill-formed part, as many as the Unicode standard recommends (one for each
/// longest beginning of a character) and Python's errors="replace" puts.
std::string replace_invalid_utf8(std::string_view text);

/// Appends a character. `code` is a scalar value: no surrogate, up to U+10FFFF.
void append_utf8(char32_t code, std::string& text);

}  // namespace titan::datasets
