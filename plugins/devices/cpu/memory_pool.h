// Keeps the memory of freed tensors for the next ones, since each step requests what the step
// before requested. Memory that goes back to the kernel would return as pages that must be zeroed
// again. Used by the cpu device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace titan::cpu {

/// Allocates large blocks out of one range of addresses. A request takes the smallest free span
/// that fits, the lowest of equal ones; free neighbours are merged. Resident memory is bounded:
/// when it exceeds the peak of bytes in use by more than `kSlack`, free spans go back to the
/// kernel, the largest first.
///
/// Thread-safe.
class MemoryPool {
 public:
  /// The pool refuses smaller blocks (bytes).
  static constexpr size_t kSmallest = 32 << 10;
  /// Allowed excess of resident memory, as a fraction of the peak of bytes in use.
  static constexpr double kSlack = 0.03;

  /// Reserves `num_bytes` of addresses, which takes no memory. If that fails, the pool gives no
  /// blocks.
  explicit MemoryPool(size_t num_bytes);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;

  /// At least `num_bytes` at an address that is a multiple of 64; null if the pool has no such
  /// block.
  void* take(size_t num_bytes);
  /// Frees `block` and returns true if it came from take() of this pool; else returns false.
  bool give_back(void* block);

  /// Starts a new peak at the bytes in use now. Until the next call the peak before it still counts
  /// towards the bound of resident memory.
  void reset_peak();

  struct Figures {
    int64_t in_use = 0, peak = 0;  // bytes; the peak since the last reset
    int64_t resident = 0;          // upper bound of bytes that have physical memory
  };
  Figures figures() const;

 private:
  struct Span {
    size_t size;
    size_t absent;  // lower bound of its bytes without physical memory
    bool is_free;
  };
  using Spans = std::map<char*, Span>;

  void add_free(Spans::iterator span);
  void remove_free(Spans::iterator span);
  void join_with_next(Spans::iterator span);
  void shrink();

  mutable std::mutex mutex_;
  char* start_ = nullptr;
  size_t capacity_ = 0;
  Spans spans_;                              // all of them, without gaps
  std::set<std::pair<size_t, char*>> free_;  // by size
  size_t in_use_ = 0, absent_ = 0;           // bytes
  size_t peak_ = 0, peak_before_ = 0;        // of in_use_, since the last reset and before it
};

}  // namespace titan::cpu
