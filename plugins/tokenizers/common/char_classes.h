// Character classes of code points, one bit per class. Used by the hand-written scanners and the
// pre-tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace titan::bpe {

/// Every character has exactly one class. White space takes precedence over the general category.
inline constexpr uint16_t kUpper = 1;             ///< Lu, Lt
inline constexpr uint16_t kLower = 1 << 1;        ///< Ll
inline constexpr uint16_t kCaseless = 1 << 2;     ///< Lm, Lo
inline constexpr uint16_t kMark = 1 << 3;         ///< M
inline constexpr uint16_t kNumber = 1 << 4;       ///< N
inline constexpr uint16_t kPunctuation = 1 << 5;  ///< P
inline constexpr uint16_t kSymbol = 1 << 6;       ///< S
inline constexpr uint16_t kNewline = 1 << 7;      ///< \r and \n
inline constexpr uint16_t kSpace = 1 << 8;        ///< every other White_Space
inline constexpr uint16_t kOther = 1 << 9;        ///< C
inline constexpr uint16_t kLetter = kUpper | kLower | kCaseless;
inline constexpr uint16_t kWhiteSpace = kNewline | kSpace;
/// `[^\s\p{L}\p{N}]`
inline constexpr uint16_t kRest = kMark | kPunctuation | kSymbol | kOther;

namespace detail {

/// Rows of 256 code points for planes 0 to 3; equal rows are stored once.
struct CharClassTable {
  static constexpr char32_t kEnd = 0x40000;
  std::array<uint16_t, (kEnd >> 8)> row_of{};
  std::vector<std::array<uint16_t, 256>> rows;

  CharClassTable();
};
inline const CharClassTable& char_class_table() {
  static const CharClassTable table;
  return table;
}
uint16_t slow_class_of(char32_t code_point);

}  // namespace detail

/// The bit of the character's class.
inline uint16_t class_of(char32_t code_point) {
  const detail::CharClassTable& table = detail::char_class_table();
  if (code_point >= table.kEnd) return detail::slow_class_of(code_point);
  return table.rows[table.row_of[code_point >> 8]][code_point & 0xFF];
}

}  // namespace titan::bpe
