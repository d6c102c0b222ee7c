// Writes Python's pickle format piece by piece, for data that are too large to become a Value
// first, such as memory histories. Used by to_pickle and by memory snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// Protocol 2, plain data: `pickle.loads` returns what was put, in this order. A pickle holds one
/// value.
class TITAN_API PickleWriter {
 public:
  PickleWriter();

  void put_null();
  void put(bool value);
  void put(int64_t number);
  void put(double number);
  void put(std::string_view text);
  void put(const char* text) { put(std::string_view(text)); }

  /// `put_item(i)` puts item i.
  template <class PutItem>
  void list(size_t count, const PutItem& put_item) {
    open(kEmptyList);
    for (size_t first = 0; first < count; first += kBatch) {
      mark();
      for (size_t i = first; i < count && i < first + kBatch; ++i) put_item(i);
      add(kAppends);
    }
  }
  /// `put_member(i)` puts a key, which is a text, and its value.
  template <class PutMember>
  void map(size_t count, const PutMember& put_member) {
    open(kEmptyDict);
    for (size_t first = 0; first < count; first += kBatch) {
      mark();
      for (size_t i = first; i < count && i < first + kBatch; ++i) put_member(i);
      add(kSetItems);
    }
  }

  /// Returns a number for the value that was put last. put_again() puts the same object by this
  /// number.
  uint32_t remember();
  void put_again(uint32_t number);

  /// [once] The bytes.
  std::string finish();

 private:
  static constexpr char kEmptyList = ']', kEmptyDict = '}', kAppends = 'e', kSetItems = 'u';
  static constexpr size_t kBatch = 1000;  // some readers take no more items at once

  void open(char empty) { out_ += empty; }
  void mark() { out_ += '('; }
  void add(char opcode) { out_ += opcode; }

  std::string out_;
  uint32_t num_remembered_ = 0;
};

}  // namespace titan
