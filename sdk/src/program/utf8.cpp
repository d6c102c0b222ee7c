#include <titan/program/utf8.h>

#include <cstddef>

namespace titan {
namespace {

/// Bytes of the well-formed UTF-8 sequence that starts at `at`, 0 when there is none.
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_no_character ? 0 : length;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    result += length ? text.substr(i, length) : std::string_view("?");
    i += length ? length : 1;
  }
  return result;
}

}  // namespace titan
