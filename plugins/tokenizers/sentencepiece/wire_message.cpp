#include "wire_message.h"

#include <bit>
#include <limits>

namespace titan::sentencepiece {
namespace {

const char* name_of(uint8_t type) {
  constexpr const char* kNames[] = {"a varint", "8 bytes",           "a length with bytes",
                                    "a group",  "an end of a group", "4 bytes"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

}  // namespace

bool WireMessage::next() {
  if (position_ == bytes_.size()) return false;
  field_start_ = position_;
  const uint64_t tag = varint("tag");
  type_ = static_cast<uint8_t>(tag & 7);
  if (tag >> 3 == 0 || tag >> 32 != 0)
    fail("a field number of ", tag >> 3,
         "; it must be from 1 to 536870911; is this a protocol "
         "buffer?");
  field_ = static_cast<uint32_t>(tag >> 3);
  value_start_ = position_;
  switch (type_) {
    case kVarint:
      varint_ = varint("value");
      break;
    case kFixed64:
      value_ = take(8, "value");
      break;
    case kFixed32:
      value_ = take(4, "value");
      break;
    case kBytes: {
      const uint64_t length = varint("length");
      value_start_ = position_;
      value_ = take(length, "value");
      break;
    }
    default:
      fail("field ", field_, " has wire type ", int{type_}, " (", name_of(type_),
           "), which a SentencePiece model never has");
  }
  return true;
}

uint64_t WireMessage::varint(const char* what) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (position_ == bytes_.size())
      fail("the ", what, " of a field is cut short by the end of the message at byte ",
           start_ + bytes_.size());
    const auto byte = static_cast<uint8_t>(bytes_[position_++]);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("the ", what, " of a field is a number of more than 64 bits");
}

std::string_view WireMessage::take(uint64_t length, const char* what) {
  if (length > bytes_.size() - position_)
    fail("the ", what, " of field ", field_, " has ", length,
         " bytes, beyond the end of the message"
         " at byte ",
         start_ + bytes_.size(), "; is the file cut short?");
  const std::string_view taken = bytes_.substr(position_, length);
  position_ += length;
  return taken;
}

void WireMessage::require(WireType type, const char* what) const {
  if (type_ != type)
    fail(what, " (field ", field_, ") must be ", name_of(type), ", got ", name_of(type_));
}

int32_t WireMessage::integer(const char* what) const {
  require(kVarint, what);
  const auto value = static_cast<int64_t>(varint_);
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    fail(what, " must fit into 32 bits, got ", value);
  return static_cast<int32_t>(value);
}

bool WireMessage::flag(const char* what) const {
  require(kVarint, what);
  if (varint_ > 1) fail(what, " must be 0 or 1, got ", static_cast<int64_t>(varint_));
  return varint_ == 1;
}

float WireMessage::number(const char* what) const {
  require(kFixed32, what);
  uint32_t bits = 0;
  for (size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(value_[i]);
  return std::bit_cast<float>(bits);
}

std::string_view WireMessage::bytes(const char* what) const {
  require(kBytes, what);
  return value_;
}

WireMessage WireMessage::message(const char* what) const {
  require(kBytes, what);
  return WireMessage(value_, *file_, value_offset());
}

void WireMessage::fail_at(size_t position, const std::string& problem) const {
  titan::fail(ErrorKind::data, *file_, ": byte ", start_ + position, ": ", problem);
}

}  // namespace titan::sentencepiece
