// UTF-8 and the Unicode properties that tokenizers need. Used by the normalizers, the hand-written
// scanners and the added-token search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <utf8proc.h>

namespace titan::bpe {

/// Length of the longest prefix of `text` that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}
/// Appends `text` to `out` with each maximal invalid part replaced by U+FFFD, as Python's
/// errors="replace" and Rust's from_utf8_lossy do.
void append_repaired(std::string_view text, std::string& out);
/// The text to encode of a document: `utf8` itself, or a copy in `repaired` with its invalid parts
/// replaced. Throws a data Error above 1 GiB: offsets have 32 bits.
std::string_view document_text(std::string_view utf8, std::string& repaired);
void append_utf8(char32_t code_point, std::string& out);

struct CodePoint {
  char32_t value;
  int length;  ///< bytes
};

/// Bytes of the code point that begins with `first`, in valid UTF-8.
inline int utf8_length(char first) {
  const auto b = static_cast<unsigned char>(first);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/// The code point at `p`, which must start valid UTF-8.
inline CodePoint decode_utf8(const char* p) {
  const auto* b = reinterpret_cast<const unsigned char*>(p);
  if (b[0] < 0x80) return {b[0], 1};
  if (b[0] < 0xE0) return {(b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu), 2};
  if (b[0] < 0xF0) return {(b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu), 3};
  return {(b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu), 4};
}
/// Start of the code point that ends before `end`; `end` is not the start of the valid text.
inline const char* previous_utf8(const char* end) {
  do --end;
  while ((static_cast<unsigned char>(*end) & 0xC0) == 0x80);
  return end;
}

/// General category by Unicode 16, independent of utf8proc's version (see unicode_additions.h).
utf8proc_category_t category(char32_t code_point);
bool is_letter(char32_t code_point);
bool is_number(char32_t code_point);
/// Lower case of a single character, except U+0130, whose lower case is two characters.
char32_t to_lower(char32_t code_point);
/// Property White_Space: 25 code points, without U+180E.
bool is_white_space(char32_t code_point);
/// A word character as in Rust's regex crate: Alphabetic, marks, decimal digits, connectors,
/// joiners.
bool is_word(char32_t code_point);

}  // namespace titan::bpe
