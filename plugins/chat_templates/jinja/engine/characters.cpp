#include "characters.h"

#include <algorithm>

#include <utf8proc.h>

namespace titan::jinja {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

/// Upper cases of several characters (Unicode's SpecialCasing), as far as they occur in words.
std::string_view long_upper(char32_t c) {
  switch (c) {
    case 0xDF:
      return "SS";
    case 0x149:
      return "\xCA\xBCN";
    case 0x1F0:
      return "J\xCC\x8C";
    case 0x587:
      return "\xD4\xB5\xD5\x92";
    case 0xFB00:
      return "FF";
    case 0xFB01:
      return "FI";
    case 0xFB02:
      return "FL";
    case 0xFB03:
      return "FFI";
    case 0xFB04:
      return "FFL";
    case 0xFB05:
    case 0xFB06:
      return "ST";
    default:
      return {};
  }
}

/// Whether the sigma at `at` ends a word: a letter before it and none after it.
bool is_final_sigma(std::string_view text, size_t at, size_t length) {
  bool has_before = false;
  for (size_t i = at; i > 0;) {
    do --i;
    while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
    const char32_t c = character_at(text, i).value;
    const auto category = category_of(c);
    if (category == UTF8PROC_CATEGORY_MN || c == '\'' || c == '.' || c == ':') continue;
    has_before = is_letter(c);
    break;
  }
  if (!has_before) return false;
  for (size_t i = at + length; i < text.size();) {
    const Character c = character_at(text, i);
    const auto category = category_of(c.value);
    if (category != UTF8PROC_CATEGORY_MN && c.value != '\'' && c.value != '.' && c.value != ':')
      return !is_letter(c.value);
    i += c.length;
  }
  return true;
}

void append_upper(std::string& into, char32_t c) {
  if (const std::string_view several = long_upper(c); !several.empty())
    into += several;
  else
    append_character(into, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c))));
}

void append_lower(std::string& into, std::string_view text, size_t at, Character c) {
  if (c.value == 0x130)
    into += "i\xCC\x87";
  else if (c.value == 0x3A3)
    into += is_final_sigma(text, at, c.length) ? "\xCF\x82" : "\xCF\x83";
  else
    append_character(into, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c.value))));
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  utf8proc_int32_t value = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &value);
  if (length <= 0) return {0xFFFD, 1};
  return {static_cast<char32_t>(value), static_cast<size_t>(length)};
}

size_t num_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

void append_character(std::string& text, char32_t value) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_digit(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : category_of(c) == UTF8PROC_CATEGORY_ND;
}

bool is_letter(char32_t c) {
  if (c < 0x80) return (c | 32) >= 'a' && (c | 32) <= 'z';
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_word(char32_t c) {
  if (c == '_') return true;
  if (is_letter(c)) return true;
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

LetterCase case_of(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
      return LetterCase::upper;
    case UTF8PROC_CATEGORY_LL:
      return LetterCase::lower;
    case UTF8PROC_CATEGORY_LT:
      return LetterCase::title;
    default:
      return LetterCase::none;
  }
}

std::string lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    append_lower(result, text, i, c);
    i += c.length;
  }
  return result;
}

std::string upper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    append_upper(result, c.value);
    i += c.length;
  }
  return result;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const Character first = character_at(text, 0);
  std::string result;
  append_upper(result, first.value);
  if (result.size() > 1 && !long_upper(first.value).empty())  // title case: only the first one is
                                                              // upper
    result = result.substr(0, character_at(result, 0).length) +
             lower(std::string_view(result).substr(character_at(result, 0).length));
  for (size_t i = first.length; i < text.size();) {
    const Character c = character_at(text, i);
    append_lower(result, text, i, c);
    i += c.length;
  }
  return result;
}

namespace {

template <class Drops>
std::string_view strip_by(std::string_view text, Sides sides, Drops drops) {
  while (sides.left && !text.empty()) {
    const Character c = character_at(text, 0);
    if (!drops(c.value)) break;
    text.remove_prefix(c.length);
  }
  while (sides.right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!drops(character_at(text, begin).value)) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

}  // namespace

std::string_view strip(std::string_view text, Sides sides) {
  return strip_by(text, sides, is_space);
}

std::string_view strip(std::string_view text, std::string_view set, Sides sides) {
  std::vector<char32_t> dropped;
  for (size_t i = 0; i < set.size();) {
    const Character c = character_at(set, i);
    dropped.push_back(c.value);
    i += c.length;
  }
  return strip_by(text, sides, [&](char32_t c) {
    return std::find(dropped.begin(), dropped.end(), c) != dropped.end();
  });
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    const bool ends = (c.value >= 0x0A && c.value <= 0x0D) ||
                      (c.value >= 0x1C && c.value <= 0x1E) || c.value == 0x85 ||
                      c.value == 0x2028 || c.value == 0x2029;
    if (!ends) {
      i += c.length;
      continue;
    }
    lines.push_back(text.substr(begin, i - begin));
    i += c.length;
    if (c.value == '\r' && i < text.size() && text[i] == '\n') ++i;
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace titan::jinja
