#include "regex_lexer.h"

#include <cctype>

#include <titan/error.h>

#include "regex_dialect.h"

namespace titan::bpe {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string digits_at(std::string_view pattern, size_t at) {
  size_t end = at;
  while (end < pattern.size() && is_digit(pattern[end])) ++end;
  return std::string(pattern.substr(at, end - at));
}

// `least` to `most` hexadecimal digits.
std::string hex_digits_at(std::string_view pattern, size_t at, size_t least, size_t most) {
  size_t end = at;
  while (end < pattern.size() && end - at < most &&
         std::isxdigit(static_cast<unsigned char>(pattern[end]))) {
    ++end;
  }
  if (end < at + least) throw PatternError(at, "hexadecimal digits are missing");
  return std::string(pattern.substr(at, end - at));
}

std::pair<std::string, size_t> hex_escape(std::string_view pattern, size_t at) {
  if (pattern.substr(at + 2).starts_with('{')) {
    const std::string digits = hex_digits_at(pattern, at + 3, 1, 8);
    const size_t close = at + 3 + digits.size();
    if (close >= pattern.size() || pattern[close] != '}') {
      throw PatternError(at, "\\x{ is not closed by }");
    }
    return {"\\x{" + digits + "}", close + 1 - at};
  }
  const std::string digits = hex_digits_at(pattern, at + 2, 1, 2);
  if (std::stol(digits, nullptr, 16) > 0x7F) {
    throw PatternError(at, "\\x above 7F is a byte, not a character");
  }
  return {"\\x{" + digits + "}", 2 + digits.size()};
}

}  // namespace

std::optional<Interval> parse_interval(std::string_view pattern, size_t at) {
  Interval result;
  result.low = digits_at(pattern, at + 1);
  size_t end = at + 1 + result.low.size();
  result.exact = true;
  if (end < pattern.size() && pattern[end] == ',') {
    result.exact = false;
    result.high = digits_at(pattern, end + 1);
    end += 1 + result.high.size();
  }
  if (end >= pattern.size() || pattern[end] != '}') return std::nullopt;
  if (result.low.empty() && result.high.empty()) return std::nullopt;
  result.length = end + 1 - at;
  return result;
}

std::pair<std::string, size_t> character_escape(std::string_view pattern, size_t at) {
  if (at + 1 >= pattern.size()) throw PatternError(at, "the pattern ends with a backslash");
  const char c = pattern[at + 1];
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80) {
    size_t end = at + 2;
    while (end < pattern.size() && (static_cast<unsigned char>(pattern[end]) & 0xC0) == 0x80) ++end;
    return {std::string(pattern.substr(at + 1, end - at - 1)), end - at};
  }
  if (std::string_view("nrtfae").find(c) != std::string_view::npos || !std::isalnum(byte)) {
    return {std::string("\\") + c, 2};
  }
  if (c == 'v') return {"\\x0B", 2};
  if (c == 'u') return {"\\x{" + hex_digits_at(pattern, at + 2, 4, 4) + "}", 6};
  if (c == 'x') return hex_escape(pattern, at);
  throw PatternError(at, titan::detail::concat("the escape \\", c, " is not supported"));
}

}  // namespace titan::bpe
