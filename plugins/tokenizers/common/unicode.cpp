#include "unicode.h"

#include <cstring>

#include <titan/error.h>

#include "unicode_additions.h"

namespace titan::bpe {
namespace {

// Length of the valid sequence at `b`, or minus the length of the maximal invalid part
// (Unicode 16, table 3-7 and section 3.9 "substitution of maximal subparts").
int sequence_length(const unsigned char* b, size_t available) {
  if (b[0] < 0x80) return 1;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  int length = 0;
  if (b[0] >= 0xC2 && b[0] <= 0xDF) {
    length = 2;
  } else if ((b[0] & 0xF0) == 0xE0) {
    length = 3;
    if (b[0] == 0xE0) low = 0xA0;
    if (b[0] == 0xED) high = 0x9F;
  } else if (b[0] >= 0xF0 && b[0] <= 0xF4) {
    length = 4;
    if (b[0] == 0xF0) low = 0x90;
    if (b[0] == 0xF4) high = 0x8F;
  } else {
    return -1;
  }
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= available || b[i] < low || b[i] > high) return -i;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

bool in(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  const auto* b = reinterpret_cast<const unsigned char*>(text.data());
  size_t i = 0;
  while (i < text.size()) {
    uint64_t block = 0;
    while (i + 8 <= text.size() &&
           (std::memcpy(&block, b + i, 8), (block & 0x8080808080808080u) == 0)) {
      i += 8;
    }
    if (i == text.size()) break;
    const int length = sequence_length(b + i, text.size() - i);
    if (length < 0) return i;
    i += static_cast<size_t>(length);
  }
  return i;
}

void append_repaired(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return;
    const int bad =
        -sequence_length(reinterpret_cast<const unsigned char*>(text.data()), text.size());
    out.append("\xEF\xBF\xBD");
    text.remove_prefix(static_cast<size_t>(bad));
  }
}

std::string_view document_text(std::string_view utf8, std::string& repaired) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  TITAN_CHECK(utf8.size() < kMaxBytes, data, "a document of ", utf8.size(),
              " bytes is too long to encode at once; the limit is 1 GiB");
  if (is_valid_utf8(utf8)) return utf8;
  repaired.clear();
  append_repaired(utf8, repaired);
  return repaired;
}

void append_utf8(char32_t c, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

utf8proc_category_t category(char32_t c) {
  const utf8proc_category_t known = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return known == UTF8PROC_CATEGORY_CN ? added_category(c) : known;
}

bool is_letter(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

char32_t to_lower(char32_t c) {
  const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  return lower == c ? added_lower_case(c) : lower;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || in(c, 0x09, 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || in(c, 0x2000, 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  const utf8proc_category_t k = category(c);
  if (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) return true;  // L, M, Nd, Nl
  if (k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D) return true;
  // Circled and squared letters: Other_Alphabetic, though their category is So.
  return in(c, 0x24B6, 0x24E9) || in(c, 0x1F130, 0x1F149) || in(c, 0x1F150, 0x1F169) ||
         in(c, 0x1F170, 0x1F189);
}

}  // namespace titan::bpe
