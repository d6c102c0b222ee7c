#include "text_counts.h"

#include <string>

namespace titan::evaluation {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Size in bytes of a blank at the start of `text`; 0: there is none. Blanks are those of Python's
/// str.isspace.
size_t blank_at_start(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F))
    return 1;
  const std::string_view two = text.substr(0, 2), three = text.substr(0, 3);
  if (two == "\xC2\x85" || two == "\xC2\xA0") return 2;
  if (three == "\xE1\x9A\x80" || three == "\xE2\x81\x9F" || three == "\xE3\x80\x80") return 3;
  // U+2000 to U+200A, U+2028, U+2029, U+202F
  if (!three.starts_with("\xE2\x80") || three.size() < 3) return 0;
  const auto last = static_cast<unsigned char>(three[2]);
  return last <= 0x8A || last == 0xA8 || last == 0xA9 || last == 0xAF ? 3 : 0;
}

}  // namespace

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && continues(text[begin])) --begin;
    if (blank_at_start(text.substr(begin)) != text.size() - begin) break;
    text = text.substr(0, begin);
  }
  return text;
}

int64_t num_characters(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += continues(c) ? 0 : 1;
  return count;
}

int64_t num_words(std::string_view text) {
  int64_t count = 1;
  bool is_within_blanks = false;
  while (!text.empty()) {
    const size_t blank = blank_at_start(text);
    if (blank > 0 && !is_within_blanks) ++count;
    is_within_blanks = blank > 0;
    text.remove_prefix(blank > 0 ? blank : 1);
  }
  return count;
}

}  // namespace titan::evaluation
