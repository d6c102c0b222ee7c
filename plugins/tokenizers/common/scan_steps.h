// Shared steps of the hand-written scanners: runs of a class, white space, contractions. Used by
// the scanners only.
#pragma once

#include <array>
#include <cstdint>

#include "char_classes.h"
#include "unicode.h"

namespace titan::bpe {

struct ScannedChar {
  uint16_t kind;  ///< of char_classes.h; 0 at the end of the text
  int length;
  bool is(uint16_t mask) const { return (kind & mask) != 0; }
};

namespace detail {
constexpr std::array<uint16_t, 128> make_ascii_classes() {
  std::array<uint16_t, 128> classes{};
  constexpr std::string_view kSymbols = "$+<=>^`|~";
  for (int b = 0; b < 128; ++b) {
    uint16_t c = kPunctuation;
    if (b >= 'a' && b <= 'z') {
      c = kLower;
    } else if (b >= 'A' && b <= 'Z') {
      c = kUpper;
    } else if (b >= '0' && b <= '9') {
      c = kNumber;
    } else if (b == '\r' || b == '\n') {
      c = kNewline;
    } else if (b == ' ' || b == '\t' || b == '\v' || b == '\f') {
      c = kSpace;
    } else if (b < 0x20 || b == 0x7F) {
      c = kOther;
    } else if (kSymbols.find(static_cast<char>(b)) != std::string_view::npos) {
      c = kSymbol;
    }
    classes[static_cast<size_t>(b)] = c;
  }
  return classes;
}
inline constexpr std::array<uint16_t, 128> kAsciiClasses = make_ascii_classes();
}  // namespace detail

inline ScannedChar char_at(const char* p, const char* end) {
  if (p == end) return {0, 0};
  const auto byte = static_cast<unsigned char>(*p);
  if (byte < 0x80) return {detail::kAsciiClasses[byte], 1};
  const CodePoint c = decode_utf8(p);
  return {class_of(c.value), c.length};
}

/// The end of the run of characters of `mask` that begins at `p`.
inline const char* skip(const char* p, const char* end, uint16_t mask) {
  for (ScannedChar c = char_at(p, end); c.is(mask); c = char_at(p, end)) p += c.length;
  return p;
}

/// The same with at most `most` characters.
inline const char* skip_some(const char* p, const char* end, uint16_t mask, int most) {
  for (ScannedChar c = char_at(p, end); most > 0 && c.is(mask); c = char_at(p, end)) {
    p += c.length;
    --most;
  }
  return p;
}

/// The alternatives before `\s+(?!\S)|\s+`: none, `\s*[\r\n]+`, or `\s++\z|\s*[\r\n]`.
enum class SpaceRule { plain, newlines, end_then_newlines };

/// The end of the match that begins at white space.
template <SpaceRule kRule>
inline const char* skip_white_space(const char* p, const char* end) {
  const char* const begin = p;
  const char* after_newline = nullptr;
  const char* last = p;
  for (ScannedChar c = char_at(p, end); c.is(kWhiteSpace); c = char_at(p, end)) {
    last = p;
    p += c.length;
    if (c.kind == kNewline) after_newline = p;
  }
  if (kRule == SpaceRule::end_then_newlines && p == end) return p;
  if (kRule != SpaceRule::plain && after_newline) return after_newline;
  return p == end || last == begin ? p : last;
}

/// The end of 's 't 're 've 'm 'll 'd at the apostrophe `p`, or null. With kIgnoreCase U+017F
/// counts as an s.
template <bool kIgnoreCase>
inline const char* skip_contraction(const char* p, const char* end) {
  const auto fold = [](char c) {
    return kIgnoreCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  const auto left = end - p;
  if (left < 2) return nullptr;
  const char a = fold(p[1]);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
  if (left < 3) return nullptr;
  const char b = fold(p[2]);
  if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return p + 3;
  if (kIgnoreCase && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
  return nullptr;
}

}  // namespace titan::bpe
