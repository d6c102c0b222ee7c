// See utf8.h. The table is 3-7 of the Unicode standard: the second byte's range depends on the
// first, all others are 80..BF.
#include "plugins/datasets/common/utf8.h"

#include <cstdint>
#include <cstring>

namespace titan::datasets {
namespace {

struct Form {
  size_t length = 0;  // 0: no character starts like this
  unsigned low = 0x80, high = 0xBF;
};

Form form_of(unsigned first) {
  if (first < 0x80) return {1};
  if (first < 0xC2) return {};
  if (first < 0xE0) return {2};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first < 0xF0) return {3};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first < 0xF4) return {4};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

/// Number of well-formed bytes at the start of the character.
size_t well_formed_bytes(const Form& form, const char* at, const char* end) {
  if (form.length == 0) return 0;
  size_t good = 1;
  for (; good < form.length && at + good != end; ++good) {
    const unsigned byte = static_cast<unsigned char>(at[good]);
    const bool fits = good == 1 ? byte >= form.low && byte <= form.high : (byte & 0xC0) == 0x80;
    if (!fits) break;
  }
  return good;
}

}  // namespace

size_t utf8_length(const char* at, const char* end) {
  const auto is_tail = [at](size_t i) {
    return (static_cast<unsigned char>(at[i]) & 0xC0) == 0x80;
  };
  const auto first = static_cast<unsigned char>(*at);
  if (first >= 0xE1 && first <= 0xEC && end - at >= 3)  // fast path for most non-Latin text
    return is_tail(1) && is_tail(2) ? 3 : 0;
  const Form form = form_of(static_cast<unsigned char>(*at));
  return well_formed_bytes(form, at, end) == form.length ? form.length : 0;
}

size_t valid_utf8_prefix(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    uint64_t word;
    while (end - at >= 8 && (std::memcpy(&word, at, 8), (word & 0x8080808080808080) == 0)) at += 8;
    if (at == end) break;
    const size_t length = utf8_length(at, end);
    if (length == 0) break;
    at += length;
  }
  return static_cast<size_t>(at - text.data());
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t good = valid_utf8_prefix(text);
    valid += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    valid += "\xEF\xBF\xBD";
    const Form form = form_of(static_cast<unsigned char>(text[0]));
    const size_t bad = well_formed_bytes(form, text.data(), text.data() + text.size());
    text.remove_prefix(bad > 0 ? bad : 1);
  }
  return valid;
}

void append_utf8(char32_t code, std::string& text) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xC0 | code >> 6), tail(0)};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  } else {
    text += {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
  }
}

}  // namespace titan::datasets
