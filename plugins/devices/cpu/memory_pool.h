// Memory of freed tensors, kept for the next ones: a step asks for what the step before it asked
// for, and what goes back to the kernel comes again as empty pages, each of them zeroed. Used by
// the cpu device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace titan::cpu {

/// Large blocks out of one range of addresses: the smallest free span that holds a block, the
/// lowest of equal ones, and free neighbours become one. What the pool holds in physical memory is
/// bounded by what was in use at once: beyond `kSlack` over that, free spans go back to the kernel,
/// the largest first.
///
/// Thread-safe.
class MemoryPool {
 public:
  /// Blocks of fewer bytes are none of the pool's.
  static constexpr size_t kSmallest = 32 << 10;
  /// Of the bytes that were in use at once.
  static constexpr double kSlack = 0.03;

  /// Reserves `num_bytes` of addresses, which takes no memory. A pool that gets none gives no
  /// blocks.
  explicit MemoryPool(size_t num_bytes);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;

  /// At least `num_bytes` at a multiple of 64; null where the pool has no such block.
  void* take(size_t num_bytes);
  /// Whether `block` came from take() of this pool; it is free then.
  bool give_back(void* block);

  /// What was in use at once counts from now on, and until the next call besides what it was
  /// before this one.
  void reset_peak();

  struct Figures {
    int64_t in_use = 0, peak = 0;  // bytes; the peak since the last reset
    int64_t resident = 0;          // bytes that the kernel may have given memory for, at most
  };
  Figures figures() const;

 private:
  struct Span {
    size_t size;
    size_t absent;  // bytes of it that hold no physical memory, at least
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
