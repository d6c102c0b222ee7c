// A stream of bytes from one rank to one or more others through memory that all of them map, and
// the bell that wakes a rank which sleeps until something comes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace titan::cpu {

/// Everything in a segment starts on a line of its own: ranks on other cores write beside it.
inline constexpr size_t kLine = 64;

/// Counts bytes since the start of a stream. Lies in shared memory.
struct alignas(kLine) StreamPosition {
  std::atomic<uint64_t> bytes;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(StreamPosition) == kLine);

/// Wakes the threads of one rank. Lies in shared memory; zero is its initial state.
///
/// Who sleeps first says so, then looks once more for what it waits for; who has brought something
/// then looks for sleepers. One of the two sees the other.
struct alignas(kLine) Bell {
  std::atomic<uint32_t> num_rings;
  std::atomic<uint32_t> num_sleepers;

  /// [any rank] After what is to be seen was written.
  void ring();
  /// [its rank] Registers a sleeper; gives what `sleep` is told.
  uint32_t announce_sleep();
  /// [its rank] Sleeps until the bell has rung since the announcement, at most `time`.
  void sleep(uint32_t announced, std::chrono::microseconds time);
  /// [its rank] Takes back an announcement without sleeping.
  void stay_awake() { num_sleepers.fetch_sub(1, std::memory_order_relaxed); }
};

/// Where a ring lies: `head` is the writer's, `tails` are the readers', `data` has `capacity`
/// bytes, a multiple of kLine.
struct RingPlace {
  StreamPosition* head = nullptr;
  StreamPosition* tails = nullptr;
  int num_readers = 0;
  std::byte* data = nullptr;
  uint64_t capacity = 0;

  static constexpr uint64_t bytes(int num_readers, uint64_t capacity) {
    return kLine * (1 + static_cast<uint64_t>(num_readers)) + capacity;
  }
  /// In memory of `bytes()` that starts at `memory`.
  static RingPlace at(std::byte* memory, int num_readers, uint64_t capacity);
};

/// The one that writes. Positions move by whole lines.
class RingWriter {
 public:
  RingWriter() = default;
  explicit RingWriter(const RingPlace& place) : place_(place) {}

  /// The free bytes from here on that lie in one piece.
  std::span<std::byte> space();
  /// Hands the next `bytes` to the readers, who still have to be woken.
  void commit(uint64_t bytes);
  /// There is no room because of this reader.
  bool waits_for_reader(size_t reader) const;

 private:
  RingPlace place_;
  uint64_t head_ = 0;
  uint64_t slowest_ = 0;  // of the readers, when it was looked at last
};

/// One that reads, number `reader` of the ring's readers.
class RingReader {
 public:
  RingReader() = default;
  RingReader(const RingPlace& place, int reader) : place_(place), reader_(reader) {}

  /// The bytes that have come and lie in one piece.
  std::span<const std::byte> available();
  /// Gives the next `bytes` back to the writer, who still has to be woken.
  void release(uint64_t bytes);
  uint64_t capacity() const { return place_.capacity; }

 private:
  RingPlace place_;
  int reader_ = 0;
  uint64_t tail_ = 0;
  uint64_t head_ = 0;  // when it was looked at last
};

}  // namespace titan::cpu
