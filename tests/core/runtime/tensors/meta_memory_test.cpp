#include "core/runtime/tensors/meta_memory.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace titan::core {
namespace {

at::Tensor bytes_on_meta(int64_t bytes) {
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(c10::kMeta));
}

class MetaMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MetaMemory::start_counting();
    before_ = MetaMemory::live();
    MetaMemory::reset_peak();
  }
  int64_t live(MemoryUse use) const { return MetaMemory::live()[use] - before_[use]; }
  int64_t at_peak(MemoryUse use) const { return MetaMemory::peak().bytes[use] - before_[use]; }

  UseBytes before_;
};

TEST_F(MetaMemoryTest, CountsByTheInnermostScopeAndGivesBack) {
  {
    const MemoryUseScope outer(MemoryUse::parameters);
    const at::Tensor shard = bytes_on_meta(100);
    {
      const MemoryUseScope inner(MemoryUse::communication);
      const at::Tensor buffer = bytes_on_meta(7);
      EXPECT_EQ(live(MemoryUse::communication), 7);
    }
    const at::Tensor another = bytes_on_meta(10);
    EXPECT_EQ(live(MemoryUse::parameters), 110);
    EXPECT_EQ(live(MemoryUse::communication), 0);
  }
  EXPECT_EQ(MetaMemory::live().total(), before_.total());
}

TEST_F(MetaMemoryTest, RemembersTheHighestMomentAndItsPlace) {
  MetaMemory::set_place("first");
  const at::Tensor kept = bytes_on_meta(50);
  MetaMemory::set_place("second");
  bytes_on_meta(30);
  MetaMemory::set_place("third");
  bytes_on_meta(20);
  const MemoryPeak peak = MetaMemory::peak();
  EXPECT_EQ(peak.bytes.total() - before_.total(), 80);
  EXPECT_EQ(peak.place, "second");
  MetaMemory::set_place("");
}

TEST_F(MetaMemoryTest, WhatAForwardLeavesIsActivationsInThePastToo) {
  at::Tensor kept;
  {
    MetaMemory::ForwardScope forward;
    kept = bytes_on_meta(40);
    bytes_on_meta(60);  // the peak: both tensors exist
    const at::Tensor late = bytes_on_meta(5);
    EXPECT_EQ(at_peak(MemoryUse::temporary), 100);
    EXPECT_EQ(forward.end(), 45);
  }
  EXPECT_EQ(live(MemoryUse::activations), 40) << "the other one ended with its scope";
  EXPECT_EQ(at_peak(MemoryUse::activations), 40);
  EXPECT_EQ(at_peak(MemoryUse::temporary), 60);
  EXPECT_EQ(MetaMemory::peak().bytes.total() - before_.total(), 100);
}

TEST_F(MetaMemoryTest, ALabelFollowsTheMemoryBetweenTensors) {
  const at::Tensor state = bytes_on_meta(64);
  const at::Tensor view = state.view({8, 8});
  MetaMemory::relabel(view, MemoryUse::optimizer_states);
  EXPECT_EQ(live(MemoryUse::optimizer_states), 64);
  EXPECT_EQ(live(MemoryUse::temporary), 0);
  MetaMemory::relabel(at::Tensor(), MemoryUse::gradients);
  MetaMemory::relabel(at::empty({4}), MemoryUse::gradients);  // a tensor in host memory is ignored
  EXPECT_EQ(live(MemoryUse::gradients), 0);
}

TEST_F(MetaMemoryTest, ANamedUseIsNotChangedByAForward) {
  MetaMemory::ForwardScope forward;
  const MemoryUseScope use(MemoryUse::communication);
  const at::Tensor gathered = bytes_on_meta(12);
  EXPECT_EQ(forward.end(), 0);
  EXPECT_EQ(live(MemoryUse::communication), 12);
}

}  // namespace
}  // namespace titan::core
