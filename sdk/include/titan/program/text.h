// Trims and compares text, and converts it to lower case, in ASCII. Other characters are unchanged.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace titan {

/// Without blanks and line ends at both ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

inline std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

inline char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = lower_case(c);
  return lowered;
}

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

}  // namespace titan
