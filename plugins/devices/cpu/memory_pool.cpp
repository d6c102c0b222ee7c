#include "memory_pool.h"

#include <algorithm>

#include <sys/mman.h>

namespace titan::cpu {
namespace {

constexpr size_t kAlignment = 64;          // of blocks, as LibTorch's
constexpr size_t kPage = size_t{2} << 20;  // large pages: fewer faults, fewer misses of the TLB
/// Allowed on top of kSlack: the fragmentation of a small pool.
constexpr size_t kSmallSlack = 4 * kPage;
/// Without it, blocks of equal size would map to the same sets of a cache.
constexpr size_t kStagger = 5 * kAlignment;

size_t rounded_up(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

char* page_at_or_after(char* address) {
  return reinterpret_cast<char*>(rounded_up(reinterpret_cast<uintptr_t>(address), kPage));
}

}  // namespace

MemoryPool::MemoryPool(size_t num_bytes) {
  capacity_ = rounded_up(num_bytes, kPage);
  void* const range = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    capacity_ = 0;
    return;
  }
  madvise(range, capacity_, MADV_HUGEPAGE);  // where it is refused, pages are small
  start_ = static_cast<char*>(range);
  absent_ = capacity_;
  add_free(spans_.emplace(start_, Span{capacity_, capacity_, true}).first);
}

MemoryPool::~MemoryPool() {
  if (start_) munmap(start_, capacity_);
}

void MemoryPool::add_free(Spans::iterator span) {
  span->second.is_free = true;
  free_.emplace(span->second.size, span->first);
}

void MemoryPool::remove_free(Spans::iterator span) {
  free_.erase({span->second.size, span->first});
  span->second.is_free = false;
}

/// Both spans are in no free list.
void MemoryPool::join_with_next(Spans::iterator span) {
  const auto next = std::next(span);
  span->second.size += next->second.size;
  span->second.absent += next->second.absent;
  spans_.erase(next);
}

void* MemoryPool::take(size_t num_bytes) {
  if (num_bytes < kSmallest || num_bytes > capacity_) return nullptr;
  const size_t size = rounded_up(num_bytes, kAlignment) + kStagger;
  const std::lock_guard lock(mutex_);
  const auto fit = free_.lower_bound({size, nullptr});
  if (fit == free_.end()) return nullptr;
  const auto span = spans_.find(fit->second);
  // The last span lacks memory at its end. Of other spans it is unknown where, so assume the worst:
  // this block covers all of it.
  const bool is_last = std::next(span) == spans_.end();
  remove_free(span);
  Span& taken = span->second;
  const size_t rest = taken.size - size;
  const size_t lacks =
      is_last ? std::min(rest, taken.absent) : taken.absent - std::min(size, taken.absent);
  const size_t filled = taken.absent - lacks;
  if (rest > 0) add_free(spans_.emplace(span->first + size, Span{rest, lacks, true}).first);
  taken = {size, 0, false};
  absent_ -= filled;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  if (filled > 0) shrink();
  return span->first;
}

bool MemoryPool::give_back(void* block) {
  auto* const address = static_cast<char*>(block);
  if (address < start_ || address >= start_ + capacity_) return false;
  const std::lock_guard lock(mutex_);
  auto span = spans_.find(address);
  in_use_ -= span->second.size;
  if (const auto next = std::next(span); next != spans_.end() && next->second.is_free) {
    remove_free(next);
    join_with_next(span);
  }
  if (span != spans_.begin() && std::prev(span)->second.is_free) {
    span = std::prev(span);
    remove_free(span);
    join_with_next(span);
  }
  add_free(span);
  return true;
}

/// Gives free spans back to the kernel until resident memory is within its bound.
void MemoryPool::shrink() {
  const size_t peak = std::max(peak_, peak_before_);
  const size_t most = peak + static_cast<size_t>(kSlack * static_cast<double>(peak)) + kSmallSlack;
  for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
    if (capacity_ - absent_ <= most) return;
    const auto span = spans_.find(it->second);
    Span& s = span->second;
    if (s.size - s.absent < kPage) continue;
    // The last span has memory at its start only: nothing behind that can be given back.
    const bool is_last = std::next(span) == spans_.end();
    char* const begin = page_at_or_after(span->first);
    char* const end =
        is_last ? page_at_or_after(span->first + (s.size - s.absent)) : span->first + s.size;
    if (begin + kPage > end) continue;
    const size_t whole = static_cast<size_t>(end - begin) / kPage * kPage;
    madvise(begin, whole, MADV_DONTNEED);
    const size_t left = is_last ? static_cast<size_t>(begin - span->first) : s.size - whole;
    const size_t absent = s.size - std::min(left, s.size - s.absent);
    absent_ += absent - s.absent;
    s.absent = absent;
  }
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_before_ = peak_;
  peak_ = in_use_;
  shrink();
}

MemoryPool::Figures MemoryPool::figures() const {
  const std::lock_guard lock(mutex_);
  return {.in_use = static_cast<int64_t>(in_use_),
          .peak = static_cast<int64_t>(peak_),
          .resident = static_cast<int64_t>(capacity_ - absent_)};
}

}  // namespace titan::cpu
