#include "core/runtime/meta_memory.h"

#include <atomic>
#include <memory>

#include <c10/core/Allocator.h>

namespace titan::core {
namespace {

std::atomic<int64_t> live_bytes{0}, peak_bytes{0};

void add(int64_t bytes) {
  const int64_t now = live_bytes += bytes;
  int64_t before = peak_bytes;
  while (now > before && !peak_bytes.compare_exchange_weak(before, now)) {
  }
}

/// A block is its size alone: the context that its deleter gets.
void forget(void* context) {
  const std::unique_ptr<int64_t> size(static_cast<int64_t*>(context));
  live_bytes -= *size;
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto size = std::make_unique<int64_t>(static_cast<int64_t>(bytes));
    add(*size);
    return {nullptr, size.release(), &forget, c10::Device(c10::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void*, const void*, size_t) const override {}
};

}  // namespace

void MetaMemory::start_counting() {
  static CountingAllocator allocator;  // outlives every tensor
  constexpr uint8_t kFirst = 255;      // before LibTorch's own
  c10::SetAllocator(c10::kMeta, &allocator, kFirst);
}

int64_t MetaMemory::live() {
  return live_bytes;
}

int64_t MetaMemory::peak() {
  return peak_bytes;
}

void MetaMemory::reset_peak() {
  peak_bytes = live_bytes.load();
}

}  // namespace titan::core
