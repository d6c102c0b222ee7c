// Peak memory of forward and backward of titan/ops: operations do not allocate more than promised,
// and the meta implementations, which memory estimates use, hold as much as the real ones.
#include <cstring>

#include <ATen/ops/full.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/chunks.h"
#include "ops_testing.h"

namespace titan::ops::testing::memory_test {
namespace {

/// Counts live bytes. Takes the memory from `source`; allocates none when `source` is null.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator(c10::Allocator* source, c10::DeviceType device)
      : source_(source), device_(device) {}

  c10::DataPtr allocate(size_t n) override {
    live_ += static_cast<int64_t>(n);
    peak_ = std::max(peak_, live_);
    auto* block = new Block{this, n, source_ ? source_->allocate(n) : c10::DataPtr()};
    return {block->memory.get(), block, &release, c10::Device(device_)};
  }
  void copy_data(void* to, const void* from, size_t n) const override {
    if (source_) std::memcpy(to, from, n);
  }

  /// Peak of live bytes while f runs, beyond those live before. Tensors use this allocator only
  /// while f runs.
  int64_t peak_of(const std::function<void()>& f) {
    constexpr uint8_t kFirst = 255;  // higher priority than LibTorch's own allocator
    c10::Allocator* const others = c10::GetAllocator(device_);
    c10::SetAllocator(device_, this, kFirst);
    const int64_t before = peak_ = live_;
    f();
    c10::SetAllocator(device_, others, kFirst);
    return peak_ - before;
  }

 private:
  struct Block {
    CountingAllocator* owner;
    size_t bytes;
    c10::DataPtr memory;
  };
  static void release(void* context) {
    std::unique_ptr<Block> block(static_cast<Block*>(context));
    block->owner->live_ -= static_cast<int64_t>(block->bytes);
  }

  c10::Allocator* source_;
  c10::DeviceType device_;
  int64_t live_ = 0, peak_ = 0;
};

/// Never destroyed, because tensors that f leaves behind are returned to it.
CountingAllocator& allocator(c10::DeviceType device) {
  static auto* const cpu = new CountingAllocator(c10::GetAllocator(c10::kCPU), c10::kCPU);
  static auto* const meta = new CountingAllocator(nullptr, c10::kMeta);
  return device == c10::kCPU ? *cpu : *meta;
}

/// Peak of forward and backward in `type`. Tensors that belong to the inputs are not counted,
/// gradient seeds are.
int64_t peak(const Function& f, const Tensors& inputs, c10::DeviceType device,
             at::ScalarType type) {
  CountingAllocator& counter = allocator(device);
  Tensors x;
  for (const Tensor& input : leaves(inputs, type)) {
    x.push_back(input.detach().to(device).requires_grad_());
  }
  return counter.peak_of([&] {
    const Tensors outputs = f(x);
    Tensors seeds;
    for (const Tensor& y : outputs) seeds.push_back(at::full(y.sizes(), 0.5, y.options()));
    torch::autograd::grad(outputs, x, seeds);
  });
}

constexpr int64_t kSlack = 256 << 10;

void expect_meta_peak_like_real(const Function& f, const Tensors& inputs) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    // double is composed of ATen operations and may need more than the fused form that meta reports
    const int64_t real = peak(f, inputs, c10::kCPU, type);
    const int64_t meta = peak(f, inputs, c10::kMeta, type);
    EXPECT_LE(meta, real + kSlack) << at::toString(type);
    if (type == at::kFloat) {
      EXPECT_GE(meta, real - kSlack);
    }
  }
}

TEST(Memory, MetaHoldsAsMuchAsTheRealOperations) {
  expect_meta_peak_like_real(
      [](const Tensors& in) -> Tensors { return {rms_norm(in[0], in[1], 1e-5)}; },
      {random({4096, 256}), random({256})});
  expect_meta_peak_like_real([](const Tensors& in) -> Tensors { return {swiglu(in[0], in[1])}; },
                             {random({4096, 256}), random({4096, 256})});
  expect_meta_peak_like_real(
      [](const Tensors& in) -> Tensors { return {ops::linear(in[0], in[1])}; },
      {random({2, 1024, 256}), random({768, 256})});
  const Tensor tokens = random_ids(4096, {2, 1024});
  expect_meta_peak_like_real(
      [&](const Tensors& in) -> Tensors {
        return {ops::embedding(in[0], tokens.to(in[0].device()))};
      },
      {random({4096, 256})});
  expect_meta_peak_like_real(
      [&](const Tensors& in) -> Tensors {
        const auto options = in[0].options();
        auto [q, k] =
            rope(in[0], in[1], at::full({512, 8}, 1, options), at::full({512, 8}, 0, options), {});
        return {q, k};
      },
      {random({4, 512, 16, 16}), random({4, 512, 8, 16})});
  const Tensor labels = random_ids(4096, {4096});
  expect_meta_peak_like_real(
      [&](const Tensors& in) -> Tensors {
        return {linear_cross_entropy(in[0], in[1], labels.to(in[0].device()))};
      },
      {random({4096, 64}), random({4096, 64})});
}

TEST(Memory, CrossEntropyNeverHoldsTheLogits) {
  const int64_t tokens = 8192, vocab_size = 4096, dim = 32;
  const Tensor labels = random_ids(vocab_size, {tokens});
  const Function f = [&](const Tensors& in) -> Tensors {
    return {linear_cross_entropy(in[0], in[1], labels)};
  };
  const Tensors in{random({tokens, dim}), random({vocab_size, dim})};
  const int64_t gradients = (tokens + vocab_size) * dim * 4;
  EXPECT_LE(peak(f, in, c10::kCPU, at::kFloat), gradients + kLogitsBytes + kSlack);
  const int64_t logits = tokens * vocab_size * 4;
  EXPECT_LE(peak(f, in, c10::kCPU, at::kFloat), logits / 10);
}

TEST(Memory, AttentionNeverHoldsTheScores) {
  const int64_t heads = 8, seq_len = 1024;
  const Function f = [](const Tensors& in) -> Tensors { return {attention(in[0], in[1], in[2])}; };
  const Tensor q = random({1, seq_len, heads, 16}).transpose(1, 2);
  const Tensor k = random({1, seq_len, 2, 16}).transpose(1, 2);
  const int64_t scores = heads * seq_len * seq_len * 4;
  EXPECT_LE(peak(f, {q, k, k}, c10::kCPU, at::kFloat), scores / 4);
  EXPECT_LE(peak(f, {q, k, k}, c10::kMeta, at::kFloat), scores / 4);
}

}  // namespace
}  // namespace titan::ops::testing::memory_test
