#include "wire.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <utility>

#include <titan/error.h>
#include <titan/files/hash.h>

namespace titan::replicas {
namespace {

// https://protobuf.dev/programming-guides/encoding
enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

void put_tag(std::string& out, uint32_t field, WireType type) {
  put_varint(out, (uint64_t{field} << 3U) | static_cast<uint64_t>(type));
}

/// proto3 leaves out fields with the default value.
void put(std::string& out, uint32_t field, int64_t value) {
  if (value == 0) return;
  put_tag(out, field, WireType::varint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_tag(out, field, WireType::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put(std::string& out, uint32_t field, std::string_view text) {
  if (!text.empty()) put_bytes(out, field, text);
}

struct Field {
  uint64_t number = 0;
  WireType type = WireType::varint;
  uint64_t varint = 0;     // of WireType::varint
  std::string_view bytes;  // of WireType::bytes

  int64_t integer() const {
    TITAN_CHECK(type == WireType::varint, data, "field ", number, " is not an integer");
    return static_cast<int64_t>(varint);
  }
  std::string_view content() const {
    TITAN_CHECK(type == WireType::bytes, data, "field ", number, " is not a text or a message");
    return bytes;
  }
};

/// The fields of one message, in their order.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3U, .type = static_cast<WireType>(tag & 7U)};
    TITAN_CHECK(field.number > 0, data, "a field has the number 0");
    switch (field.type) {
      case WireType::varint:
        field.varint = varint();
        break;
      case WireType::fixed64:
        take(8);
        break;
      case WireType::bytes:
        field.bytes = take(varint());
        break;
      case WireType::fixed32:
        take(4);
        break;
      default:
        fail(ErrorKind::data, "field ", field.number, " has the unknown type ", tag & 7U);
    }
    return true;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    fail(ErrorKind::data, "an integer is longer than 10 bytes");
  }

  std::string_view take(uint64_t size) {
    TITAN_CHECK(size <= rest_.size(), data, "the message is cut off: ", size,
                " bytes are wanted and ", rest_.size(), " are left");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

/// Other programs may put any text there.
Value data_of(std::string_view text) {
  if (text.empty()) return {};
  try {
    return parse_json(text);
  } catch (const Error&) {
    return Value(text);
  }
}

Member member_of(std::string_view message) {
  Member member;
  member.world_size = 0;
  Fields fields(message);
  for (Field field; fields.next(field);) {
    switch (field.number) {
      case 1:
        member.id = field.content();
        break;
      case 2:
        member.address = field.content();
        break;
      case 3:
        member.store = field.content();
        break;
      case 4:
        member.step = field.integer();
        break;
      case 5:
        member.world_size = field.integer();
        break;
      case 7:
        member.data = data_of(field.content());
        break;
      case 8:
        member.commit_failures = field.integer();
        break;
      default:
        break;
    }
  }
  return member;
}

struct Timestamp {
  int64_t seconds = 0, nanos = 0;
};

Timestamp timestamp_of(std::string_view message) {
  Timestamp time;
  Fields fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1) time.seconds = field.integer();
    if (field.number == 2) time.nanos = field.integer();
  }
  return time;
}

Quorum quorum_of(std::string_view message) {
  Quorum quorum;
  Timestamp created;
  Fields fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1) quorum.id = field.integer();
    if (field.number == 2) quorum.members.push_back(member_of(field.content()));
    if (field.number == 3) created = timestamp_of(field.content());
  }
  std::sort(quorum.members.begin(), quorum.members.end(),
            [](const Member& a, const Member& b) { return a.id < b.id; });
  std::string ids;
  for (const Member& member : quorum.members) ids += member.id + "\n";
  quorum.epoch =
      detail::concat(quorum.id, "-", created.seconds, "-", created.nanos, "-", hash64_hex(ids));
  return quorum;
}

}  // namespace

std::string heartbeat_request(std::string_view id) {
  std::string out;
  put(out, 1, id);
  return out;
}

std::string quorum_request(const Member& requester) {
  std::string member;
  put(member, 1, requester.id);
  put(member, 2, requester.address);
  put(member, 3, requester.store);
  put(member, 4, requester.step);
  put(member, 5, requester.world_size);
  if (!requester.data.is_null()) put(member, 7, to_json(requester.data));
  put(member, 8, requester.commit_failures);
  std::string out;
  put_bytes(out, 1, member);
  return out;
}

Quorum quorum_response(std::string_view bytes) {
  try {
    Fields fields(bytes);
    for (Field field; fields.next(field);)
      if (field.number == 1) return quorum_of(field.content());
    fail(ErrorKind::data, "it has no quorum");
  } catch (Error& error) {
    error.with_context("while reading the lighthouse's answer");
    throw;
  }
}

std::string grpc_frame(std::string_view message) {
  TITAN_CHECK(message.size() <= std::numeric_limits<uint32_t>::max(), data, "a message of ",
              message.size(), " bytes is too long for gRPC");
  const auto size = static_cast<uint32_t>(message.size());
  std::string frame(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) frame += static_cast<char>(size >> shift);
  return frame.append(message);
}

std::string_view grpc_message(std::string_view body) {
  TITAN_CHECK(body.size() >= 5, data, "an answer of ", body.size(), " bytes is no message of gRPC");
  TITAN_CHECK(body[0] == 0, data, "the answer is compressed, which nobody asked for");
  uint32_t size = 0;
  for (const char byte : body.substr(1, 4)) size = (size << 8U) | static_cast<unsigned char>(byte);
  TITAN_CHECK(body.size() == 5 + uint64_t{size}, data, "the answer has ", body.size() - 5,
              " bytes instead of ", size);
  return body.substr(5);
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const first = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(first, first + 2, code, 16).ptr == first + 2) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace titan::replicas
