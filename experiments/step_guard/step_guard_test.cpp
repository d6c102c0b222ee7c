// The guard around an executor with prescribed losses and gradients.
#include "step_guard.h"

#include <memory>
#include <optional>
#include <string>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace step_guard {
namespace {

using titan::Verdict;

class OneWeight final : public titan::nn::Module {
 public:
  OneWeight() { add_parameter("weight", {3}, titan::nn::Init::constant(2)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const titan::Batch&) override { return x; }
};

std::vector<titan::Layer> one_weight() {
  std::vector<titan::Layer> layers;
  layers.push_back({"layer", std::make_unique<OneWeight>(), "layer"});
  return layers;
}

class NoDevice final : public titan::Device {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "none"; }
  titan::MemoryStats memory() const override { return {}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint&) override {
    return nullptr;
  }
};

class StepGuardTest : public ::testing::Test, public titan::StepExecutor {
 protected:
  StepGuardTest() : part_(one_weight()) { part_.materialize(c10::kCPU, at::kFloat, 1); }

  void connect(titan::StepContext) override {}
  titan::StepLoss forward(const titan::StepBatches&) override { return {}; }
  titan::StepLoss forward_backward(const titan::StepBatches&) override {
    EXPECT_FALSE(part_.parameters().front()->grad().defined());
    ++num_runs_;
    part_.parameters().front()->shard().mutable_grad() =
        at::full({3}, num_runs_ == flawed_run_ ? -0.0 : 0.0);
    return {num_runs_ == lossy_run_ ? 2.0 : 1.0};
  }
  /// The guard's judgement of a step numbered `number`.
  titan::Judgement judge(const StepGuardOptions& options, int64_t number = 1, int64_t attempt = 1) {
    StepGuard guard(options, context_);
    guard.apply(part_, context_);
    guard.wrap(*this);
    part_.clear_gradients();
    guard.forward_backward({});
    return guard.judge({.number = number, .attempt = attempt});
  }

  const titan::dist::Mesh mesh_;
  NoDevice device_;
  const titan::TransformContext context_{.mesh = mesh_, .device = device_};
  titan::ModelPart part_;
  int num_runs_ = 0, flawed_run_ = 0, lossy_run_ = 0;
};

constexpr StepGuardOptions kNoDrills{.drill_share = 0};

TEST_F(StepGuardTest, LetsThroughWhatComesOutAgain) {
  EXPECT_EQ(judge(kNoDrills).verdict, Verdict::commit);
  EXPECT_EQ(num_runs_, 2);
  EXPECT_EQ(judge({.runs_twice = false, .drill_share = 0}).verdict, Verdict::commit);
  EXPECT_EQ(num_runs_, 3);
}

TEST_F(StepGuardTest, RepeatsWhatDiffersInASignOfZero) {
  flawed_run_ = 2;
  const titan::Judgement judgement = judge(kNoDrills, 4);
  EXPECT_EQ(judgement.verdict, Verdict::repeat);
  EXPECT_EQ(judgement.reason,
            "the gradient of 'layer.weight' differed between two runs; step 4 is run again");
}

TEST_F(StepGuardTest, RepeatsAStepWhoseLossDiffers) {
  lossy_run_ = 1;
  EXPECT_EQ(judge(kNoDrills).reason, "the loss differed between two runs; step 1 is run again");
}

TEST_F(StepGuardTest, DrillsTheSameTenthOfAllStepsOnce) {
  const StepGuardOptions options;
  const StepGuard guard(options, context_);
  const StepGuard other({.seed = 1}, context_);
  int num_drills = 0, num_common = 0;
  for (int64_t number = 1; number <= 10000; ++number) {
    num_drills += guard.is_drill(number);
    num_common += guard.is_drill(number) && other.is_drill(number);
    if (!guard.is_drill(number) || num_drills != 1) continue;
    EXPECT_EQ(judge(options, number).verdict, Verdict::repeat);
    EXPECT_EQ(judge(options, number, 2).verdict, Verdict::commit);
  }
  EXPECT_NEAR(num_drills, 1000, 100);
  EXPECT_NEAR(num_common, 100, 40);
}

}  // namespace
}  // namespace step_guard
