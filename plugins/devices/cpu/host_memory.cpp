#include "host_memory.h"

#include <atomic>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <unistd.h>

#include "memory_pool.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TITAN_MEMORY_IS_WATCHED 1
#else
#define TITAN_MEMORY_IS_WATCHED 0
#endif

namespace titan::cpu {
namespace {

std::atomic<MemoryPool*> pool{nullptr};  // outlives every tensor

class KeepingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    void* const data = num_bytes > 0 ? take_memory(num_bytes) : nullptr;
    return {data, data, &give_memory_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_memory_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void keep_memory() {
  if (TITAN_MEMORY_IS_WATCHED) return;
  // As many addresses as physical memory: larger requests go to the C library and fail as before.
  static auto* const kPool = new MemoryPool(static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  static auto* const kAllocator = new KeepingAllocator;
  pool = kPool;
  constexpr uint8_t kBeforeTheirs = 254;  // above LibTorch's, below the counting allocator's
  c10::SetCPUAllocator(kAllocator, kBeforeTheirs);
}

void* take_memory(size_t num_bytes) {
  if (MemoryPool* const kept = pool)
    if (void* const block = kept->take(num_bytes)) return block;
  return c10::alloc_cpu(num_bytes);
}

void give_memory_back(void* block) {
  if (MemoryPool* const kept = pool)
    if (kept->give_back(block)) return;
  c10::free_cpu(block);
}

void reset_kept_peak() {
  if (MemoryPool* const kept = pool) kept->reset_peak();
}

}  // namespace titan::cpu
