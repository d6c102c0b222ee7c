#include "ring.h"

#include <algorithm>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan::cpu {

void Futex::wake() {
  // orders earlier writes before the read of num_sleepers; see announce_sleep
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (num_sleepers.load(std::memory_order_relaxed) == 0) return;
  num_rings.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &num_rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t Futex::announce_sleep() {
  const uint32_t announced = num_rings.load(std::memory_order_acquire);
  num_sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return announced;
}

void Futex::sleep(uint32_t announced, std::chrono::microseconds time) {
  const auto nanoseconds = std::chrono::nanoseconds(time).count();
  const timespec at_most{.tv_sec = nanoseconds / 1'000'000'000,
                         .tv_nsec = nanoseconds % 1'000'000'000};
  // any reason to wake up is fine: the caller checks its condition again
  ::syscall(SYS_futex, &num_rings, FUTEX_WAIT, announced, &at_most, nullptr, 0);
  num_sleepers.fetch_sub(1, std::memory_order_relaxed);
}

RingPlace RingPlace::at(std::byte* memory, int num_readers, uint64_t capacity) {
  auto* positions = reinterpret_cast<StreamPosition*>(memory);
  return {.head = positions,
          .tails = positions + 1,
          .num_readers = num_readers,
          .data = memory + kLine * (1 + static_cast<uint64_t>(num_readers)),
          .capacity = capacity};
}

std::span<std::byte> RingWriter::space() {
  if (head_ - slowest_ > place_.capacity / 2) {
    uint64_t slowest = UINT64_MAX;
    for (int reader = 0; reader < place_.num_readers; ++reader)
      slowest = std::min(slowest, place_.tails[reader].bytes.load(std::memory_order_acquire));
    slowest_ = slowest;
  }
  const uint64_t begin = head_ % place_.capacity;
  return {place_.data + begin,
          std::min(place_.capacity - (head_ - slowest_), place_.capacity - begin)};
}

void RingWriter::commit(uint64_t bytes) {
  head_ += bytes;
  place_.head->bytes.store(head_, std::memory_order_release);
}

bool RingWriter::waits_for_reader(size_t reader) const {
  return head_ - place_.tails[reader].bytes.load(std::memory_order_acquire) == place_.capacity;
}

std::span<const std::byte> RingReader::available() {
  if (head_ == tail_) head_ = place_.head->bytes.load(std::memory_order_acquire);
  const uint64_t begin = tail_ % place_.capacity;
  return {place_.data + begin, std::min(head_ - tail_, place_.capacity - begin)};
}

void RingReader::release(uint64_t bytes) {
  tail_ += bytes;
  place_.tails[reader_].bytes.store(tail_, std::memory_order_release);
}

}  // namespace titan::cpu
