// Serializes protobuf messages field by field. Header only, see output_file.h.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace titan::loggers {

/// Appends fields to a serialized message; a repeated field is appended once for each value.
class Message {
 public:
  Message& integer(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, double value) {
    key(field, 1);
    little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Message& number32(int field, float value) {
    key(field, 5);
    little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    data_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.data_); }
  const std::string& str() const { return data_; }

 private:
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) data_ += static_cast<char>(value | 0x80);
    data_ += static_cast<char>(value);
  }
  void little_endian(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) data_ += static_cast<char>(value >> (8 * i));
  }

  std::string data_;
};

}  // namespace titan::loggers
