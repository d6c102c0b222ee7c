#include "counting_allocator.h"

#include <atomic>
#include <cstring>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "host_memory.h"

namespace titan::cpu {
namespace {

/// Header before the memory of each block; free_block finds it by the block's address alone. Its
/// size is LibTorch's alignment.
constexpr size_t kHeaderBytes = 64;

std::atomic<int64_t> live_bytes{0}, peak_bytes{0};
std::atomic<MemoryListener*> listener_of_blocks{nullptr};  // receives each block

void add(int64_t bytes) {
  const int64_t now = live_bytes += bytes;
  int64_t before = peak_bytes;
  while (now > before && !peak_bytes.compare_exchange_weak(before, now)) {
  }
}

void free_block(void* data) {
  if (!data) return;
  char* const block = static_cast<char*>(data) - kHeaderBytes;
  int64_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  live_bytes -= bytes;
  // before the block is freed: another thread may get its address at once
  if (MemoryListener* const listener = listener_of_blocks)
    listener->given_back(reinterpret_cast<uint64_t>(data));
  give_memory_back(block);
}

char* take(size_t num_bytes) {
  try {
    return static_cast<char*>(take_memory(num_bytes + kHeaderBytes));
  } catch (...) {
    if (MemoryListener* const listener = listener_of_blocks)
      listener->refused(static_cast<int64_t>(num_bytes));
    throw;
  }
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    if (num_bytes == 0) return {nullptr, nullptr, &free_block, c10::Device(c10::kCPU)};
    const auto bytes = static_cast<int64_t>(num_bytes);
    char* const block = take(num_bytes);
    std::memcpy(block, &bytes, sizeof bytes);
    add(bytes);
    void* const data = block + kHeaderBytes;
    if (MemoryListener* const listener = listener_of_blocks)
      listener->taken(reinterpret_cast<uint64_t>(data), bytes);
    return {data, data, &free_block, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void TensorCount::start() {
  static auto* const kAllocator = new CountingAllocator;  // outlives every tensor
  constexpr uint8_t kFirst = 255;                         // before LibTorch's own
  c10::SetCPUAllocator(kAllocator, kFirst);
}

void TensorCount::tell(MemoryListener& listener) {
  listener_of_blocks = &listener;
}

int64_t TensorCount::peak() {
  return peak_bytes;
}

void TensorCount::reset_peak() {
  peak_bytes = live_bytes.load();
}

}  // namespace titan::cpu
