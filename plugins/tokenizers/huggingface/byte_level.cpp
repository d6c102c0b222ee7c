#include "byte_level.h"

#include <array>

#include "../common/unicode.h"

namespace titan::huggingface {
namespace {

constexpr bool is_printable(unsigned b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

constexpr char32_t kFirstSubstitute = 0x100;
constexpr size_t kNumCharacters = 0x100 + 68;  // 68 bytes are not printable

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, kNumCharacters> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (int16_t& b : a.byte) b = -1;
  char32_t substitute = kFirstSubstitute;
  for (unsigned b = 0; b < 256; ++b) {
    a.character[b] = is_printable(b) ? b : substitute++;
    a.byte[a.character[b]] = static_cast<int16_t>(b);
  }
  return a;
}
constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (const char* p = token.data(); p < token.data() + token.size();) {
    const bpe::CodePoint c = bpe::decode_utf8(p);
    p += c.length;
    if (c.value >= kNumCharacters || kAlphabet.byte[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[c.value]);
  }
  return bytes;
}

std::string token_of_byte(uint8_t byte) {
  std::string token;
  bpe::append_utf8(kAlphabet.character[byte], token);
  return token;
}

}  // namespace titan::huggingface
