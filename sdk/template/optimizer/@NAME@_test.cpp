// Tests of the optimizer @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/optimizer.h>
#include <titan/testing/component.h>
#include <titan/testing/network.h>

namespace {

using titan::testing::make;
using titan::testing::parameter;
using titan::testing::random;
using titan::testing::same_bits;

/// Steps `first` to `last`, on the same gradients in every test.
void take_steps(titan::Optimizer& optimizer, titan::Parameter& weight, uint64_t first, uint64_t last) {
  for (uint64_t step = first; step <= last; ++step) {
    weight.shard().mutable_grad() = random({3, 4}, step);
    optimizer.step(/*lr_factor=*/1.0);
  }
}

TEST(@CLASS@, TheFirstStepIsGradientDescent) {
  const auto weight = parameter("weight", {3, 4});
  const at::Tensor before = weight->shard().detach().clone();
  const auto optimizer = make<titan::Optimizer>("@FULL_NAME@", {{"lr", 0.5}}, {{weight.get()}});
  take_steps(*optimizer, *weight, 1, 1);
  EXPECT_TRUE(same_bits(weight->shard(), before.sub(random({3, 4}, 1), 0.5)));
}

TEST(@CLASS@, ResumesAsIfItHadNeverStopped) {
  const auto straight = parameter("weight", {3, 4}), resumed = parameter("weight", {3, 4});
  const auto whole = make<titan::Optimizer>("@FULL_NAME@", {}, {{straight.get()}});
  take_steps(*whole, *straight, 1, 6);

  const auto first = make<titan::Optimizer>("@FULL_NAME@", {}, {{resumed.get()}});
  take_steps(*first, *resumed, 1, 3);
  const auto second = make<titan::Optimizer>("@FULL_NAME@", {}, {{resumed.get()}});
  titan::testing::copy_states(*first, *second);  // what a checkpoint does
  take_steps(*second, *resumed, 4, 6);
  EXPECT_TRUE(same_bits(straight->shard(), resumed->shard()));
}

TEST(@CLASS@, ALearningRateOfZeroIsRefused) {
  EXPECT_THROW(make<titan::Optimizer>("@FULL_NAME@", {{"lr", 0.0}}), titan::Error);
}

}  // namespace
