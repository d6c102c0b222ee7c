// Reads the wire format of protocol buffers, as far as a SentencePiece model needs it: messages of
// varints, floats and bytes. Used by model_file only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <titan/error.h>

namespace titan::sentencepiece {

/// Iterates over the fields of one message. Nothing is copied: the bytes of the file and its name
/// outlive the message.
///
/// Every problem is a data Error that names the file and the byte: a truncated field, a length
/// beyond the end of the message, another wire type than requested, groups.
///
///     while (message.next())
///       if (message.field() == 3) size = message.integer("size");
class WireMessage {
 public:
  /// `start`: where `bytes` begin in the file.
  WireMessage(std::string_view bytes, const std::string& file, size_t start = 0)
      : bytes_(bytes), file_(&file), start_(start) {}

  /// Moves to the next field; false at the end.
  bool next();

  /// The current field's number, and where in the file it begins.
  uint32_t field() const { return field_; }
  size_t offset() const { return start_ + field_start_; }
  /// Where in the file the value of the current field begins; for bytes, the first byte.
  size_t value_offset() const { return start_ + value_start_; }

  // The value of the current field; `what` names it for messages.
  int32_t integer(const char* what) const;
  bool flag(const char* what) const;
  float number(const char* what) const;
  std::string_view bytes(const char* what) const;
  WireMessage message(const char* what) const;

  /// Throws a data Error at the current field.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_at(field_start_, detail::concat(parts...));
  }

 private:
  enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t varint(const char* what);
  std::string_view take(uint64_t length, const char* what);
  void require(WireType type, const char* what) const;
  [[noreturn]] void fail_at(size_t position, const std::string& problem) const;

  std::string_view bytes_;
  const std::string* file_;
  size_t start_;
  size_t position_ = 0;
  size_t field_start_ = 0;
  size_t value_start_ = 0;
  uint32_t field_ = 0;
  uint8_t type_ = 0;
  uint64_t varint_ = 0;     // the value, by wire type
  std::string_view value_;  // the bytes of all other wire types
};

}  // namespace titan::sentencepiece
