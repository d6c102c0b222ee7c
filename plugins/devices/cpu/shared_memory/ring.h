// A byte stream from one rank to one or more others through shared memory, and the futex
// that wakes a sleeping rank. Used by Engine and its operations.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace titan::cpu {

/// Objects in a segment are aligned to a cache line: ranks on other cores write next to them.
inline constexpr size_t kLine = 64;

/// Counts bytes since the start of a stream. Lies in shared memory.
struct alignas(kLine) StreamPosition {
  std::atomic<uint64_t> bytes;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(StreamPosition) == kLine);

/// Wakes the threads of one rank. Lies in shared memory; zero is its initial state.
///
/// A thread that wants to sleep announces it first and then checks its condition once more. A
/// thread that changes something checks for sleepers afterwards. So at least one of the two sees
/// the other.
struct alignas(kLine) Futex {
  std::atomic<uint32_t> num_rings;
  std::atomic<uint32_t> num_sleepers;

  /// [any rank] Called after the data were written.
  void wake();
  /// [its rank] Registers a sleeper; returns the argument `announced` of `sleep`.
  uint32_t announce_sleep();
  /// [its rank] Sleeps until a wake() since the announcement, at most `time`.
  void sleep(uint32_t announced, std::chrono::microseconds time);
  /// [its rank] Withdraws an announcement without sleeping.
  void stay_awake() { num_sleepers.fetch_sub(1, std::memory_order_relaxed); }
};

/// Addresses of a ring: the writer advances `head`, the readers advance `tails`, `data` has
/// `capacity` bytes, a multiple of kLine.
struct RingPlace {
  StreamPosition* head = nullptr;
  StreamPosition* tails = nullptr;
  int num_readers = 0;
  std::byte* data = nullptr;
  uint64_t capacity = 0;

  static constexpr uint64_t bytes(int num_readers, uint64_t capacity) {
    return kLine * (1 + static_cast<uint64_t>(num_readers)) + capacity;
  }
  /// Places a ring in memory of `bytes()` that starts at `memory`.
  static RingPlace at(std::byte* memory, int num_readers, uint64_t capacity);
};

/// The writing end. Positions move by whole lines.
class RingWriter {
 public:
  RingWriter() = default;
  explicit RingWriter(const RingPlace& place) : place_(place) {}

  /// The contiguous free bytes from the current position on.
  std::span<std::byte> space();
  /// Publishes the next `bytes` to the readers; the caller must wake them.
  void commit(uint64_t bytes);
  /// The ring is full because of this reader.
  bool waits_for_reader(size_t reader) const;

 private:
  RingPlace place_;
  uint64_t head_ = 0;
  uint64_t slowest_ = 0;  // position of the slowest reader when last read
};

/// A reading end, number `reader` of the ring's readers.
class RingReader {
 public:
  RingReader() = default;
  RingReader(const RingPlace& place, int reader) : place_(place), reader_(reader) {}

  /// The contiguous bytes that have come.
  std::span<const std::byte> available();
  /// Returns the next `bytes` to the writer; the caller must wake it.
  void release(uint64_t bytes);
  uint64_t capacity() const { return place_.capacity; }

 private:
  RingPlace place_;
  int reader_ = 0;
  uint64_t tail_ = 0;
  uint64_t head_ = 0;  // when last read
};

}  // namespace titan::cpu
