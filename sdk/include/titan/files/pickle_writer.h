// Writes Python's pickle format piece by piece, for what is too large to be a Value first:
// histories of memory. Used by to_pickle and by memory snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// Protocol 2, plain data: what `pickle.loads` gives is what was put, in this order. A pickle holds
/// one value.
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

  /// Gives the value that was put last a number, by which it can be put again: the same object.
  uint32_t remember();
  void put_again(uint32_t number);

  /// The bytes. Once.
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
