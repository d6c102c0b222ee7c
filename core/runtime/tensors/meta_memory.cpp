#include "core/runtime/tensors/meta_memory.h"

#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include <c10/core/Allocator.h>

namespace titan::core {
namespace {

/// Memory of one storage: the context that its deleter gets.
struct Block {
  int64_t bytes = 0;
  int64_t number = 0;  ///< counted from 1 in the order of allocation
  MemoryUse use = MemoryUse::temporary;
};

/// All blocks, and the peak.
class Ledger {
 public:
  void add(Block& block) {
    const std::lock_guard lock(mutex_);
    block.number = ++last_number_;
    live_[block.use] += block.bytes;
    live_total_ += block.bytes;
    if (num_forwards_ > 0) young_.emplace(block.number, &block);
    if (live_total_ > peak_total_) take_peak();
  }

  void remove(const Block& block) {
    const std::lock_guard lock(mutex_);
    live_[block.use] -= block.bytes;
    live_total_ -= block.bytes;
    young_.erase(block.number);
  }

  void relabel(Block& block, MemoryUse use) {
    const std::lock_guard lock(mutex_);
    change(block, use);
  }

  void start_forward() {
    const std::lock_guard lock(mutex_);
    ++num_forwards_;
  }

  int64_t end_forward() {
    const std::lock_guard lock(mutex_);
    int64_t kept = 0;
    for (const auto& [number, block] : young_)
      if (block->use == MemoryUse::temporary) {
        change(*block, MemoryUse::activations);
        kept += block->bytes;
      }
    if (--num_forwards_ == 0) young_.clear();
    return kept;
  }

  UseBytes live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }
  MemoryPeak peak() const {
    const std::lock_guard lock(mutex_);
    return {peak_, peak_place_ ? *peak_place_ : std::string()};
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    take_peak();
  }
  void set_place(std::string place) {
    auto shared = std::make_shared<const std::string>(std::move(place));
    const std::lock_guard lock(mutex_);
    place_ = std::move(shared);
  }

 private:
  void take_peak() {
    peak_total_ = live_total_;
    peak_ = live_;
    peak_place_ = place_;
    peak_number_ = last_number_;
  }

  /// A temporary block that existed at the peak had the use `use` then too.
  void change(Block& block, MemoryUse use) {
    live_[block.use] -= block.bytes;
    live_[use] += block.bytes;
    if (block.use == MemoryUse::temporary && block.number <= peak_number_) {
      peak_[block.use] -= block.bytes;
      peak_[use] += block.bytes;
    }
    block.use = use;
  }

  mutable std::mutex mutex_;
  UseBytes live_, peak_;
  int64_t live_total_ = 0, peak_total_ = 0;
  int64_t last_number_ = 0, peak_number_ = 0;
  std::shared_ptr<const std::string> place_, peak_place_;
  int num_forwards_ = 0;
  std::map<int64_t, Block*> young_;  // allocated by the forwards that are running
};

Ledger& ledger() {
  static auto* const kLedger = new Ledger;  // outlives every tensor
  return *kLedger;
}

void forget(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  ledger().remove(*block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto block = std::make_unique<Block>();
    block->bytes = static_cast<int64_t>(bytes);
    block->use = MemoryUseScope::current();
    ledger().add(*block);
    return {nullptr, block.release(), &forget, c10::Device(c10::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void*, const void*, size_t) const override {}
};

}  // namespace

int64_t UseBytes::total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0});
}

void MetaMemory::start_counting() {
  static auto* const kAllocator = new CountingAllocator;  // outlives every tensor
  constexpr uint8_t kFirst = 255;                         // before LibTorch's own
  c10::SetAllocator(c10::kMeta, kAllocator, kFirst);
}

UseBytes MetaMemory::live() {
  return ledger().live();
}

MemoryPeak MetaMemory::peak() {
  return ledger().peak();
}

void MetaMemory::reset_peak() {
  ledger().reset_peak();
}

void MetaMemory::set_place(std::string place) {
  ledger().set_place(std::move(place));
}

void MetaMemory::relabel(const at::Tensor& tensor, MemoryUse use) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get_deleter() == &forget && memory.get_context())
    ledger().relabel(*static_cast<Block*>(memory.get_context()), use);
}

MetaMemory::ForwardScope::ForwardScope() {
  ledger().start_forward();
}

MetaMemory::ForwardScope::~ForwardScope() {
  end();
}

int64_t MetaMemory::ForwardScope::end() {
  return std::exchange(is_open_, false) ? ledger().end_forward() : 0;
}

}  // namespace titan::core
