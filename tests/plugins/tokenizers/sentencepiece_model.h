// Writes small SentencePiece models, good and bad ones, field by field. Used by the tests and the
// fuzzer of the tokenizer plugin `sentencepiece`.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace titan::sentencepiece {

/// The bytes of a protocol buffer message. Every call appends one field and returns the message.
class WireText {
 public:
  WireText& varint(uint32_t field, uint64_t value) {
    number(field << 3);
    number(value);
    return *this;
  }
  WireText& fixed32(uint32_t field, float value) {
    number(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
    return *this;
  }
  WireText& bytes(uint32_t field, std::string_view value) {
    number(field << 3 | 2);
    number(value.size());
    bytes_ += value;
    return *this;
  }
  WireText& message(uint32_t field, const WireText& value) { return bytes(field, value.bytes_); }
  WireText& raw(std::string_view value) {
    bytes_ += value;
    return *this;
  }

  const std::string& text() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

inline WireText piece(std::string_view text, float score, uint64_t type = 1) {
  return WireText().bytes(1, text).fixed32(2, score).varint(3, type);
}

/// A BPE model: <unk> 0, <s> 1, </s> 2, then "▁" 3, "a" 4, "b" 5, "c" 6, "ab" 7, "bc" 8, "▁a" 9,
/// "abc" 10. Only the pieces, no specs.
inline WireText small_pieces() {
  WireText model;
  model.message(1, piece("<unk>", 0, 2)).message(1, piece("<s>", 0, 3));
  model.message(1, piece("</s>", 0, 3));
  for (const char* text : {"\xE2\x96\x81", "a", "b", "c"}) model.message(1, piece(text, -10));
  model.message(1, piece("ab", -1)).message(1, piece("bc", -1));
  model
      .message(1, piece("\xE2\x96\x81"
                        "a",
                        -2))
      .message(1, piece("abc", -3));
  return model;
}

inline WireText trainer(uint64_t model_type) {
  return WireText().varint(3, model_type);
}

inline WireText normalizer(bool dummy_prefix, bool remove_extra) {
  return WireText().bytes(1, "identity").varint(3, dummy_prefix).varint(4, remove_extra);
}

/// small_pieces() as a valid model.
inline WireText small_model(uint64_t model_type = 2, bool dummy_prefix = true,
                            bool remove_extra = false) {
  return small_pieces()
      .message(2, trainer(model_type))
      .message(3, normalizer(dummy_prefix, remove_extra));
}

/// With pieces for all bytes, from id 11 on.
inline WireText small_byte_model() {
  WireText model = small_pieces();
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    model.message(1,
                  piece(std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">", 0, 6));
  return model.message(2, trainer(2).varint(35, 1)).message(3, normalizer(true, false));
}

/// A charsmap of one rule: the characters `from` become `to`. Unit 0 is the root, unit i the node
/// of the i-th byte, the last unit the value.
inline std::string charsmap(std::string_view from, std::string_view to) {
  std::string units;
  const auto put = [&](uint32_t unit) {
    for (int shift = 0; shift < 32; shift += 8) units += static_cast<char>(unit >> shift);
  };
  // a node's offset, XORed with its index and the next byte, leads to the next unit
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(from[i]); };
  put((1u ^ byte(0)) << 10);
  for (uint32_t i = 0; i < from.size(); ++i) {
    const uint32_t place = i + 1;
    const bool is_last = place == from.size();
    const uint32_t next = is_last ? 0 : byte(place);
    put((place ^ (place + 1) ^ next) << 10 | static_cast<uint32_t>(is_last) << 8 | byte(i));
  }
  put(1u << 31);
  std::string map;
  for (size_t i = 0; i < 4; ++i) map += static_cast<char>(units.size() >> 8 * i);
  return map + units + std::string(to) + '\0';
}

}  // namespace titan::sentencepiece
