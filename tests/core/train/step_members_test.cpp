// The trainer's own members in one step: updates and counts, and that a step without a commit
// leaves no trace.
#include "core/train/step_members.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "core/train/optimizer/finite_checks.h"
#include "tests/core/train/step/step_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

/// w <- w - lr_factor * (g + m), m <- m / 2 + g.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(ModelPart& part) : part_(part), momentum_(at::full({3}, 0.0)) {}
  void step(double lr_factor) override {
    const at::NoGradGuard no_grad;
    const nn::Parameter& parameter = *part_.parameters().front();
    parameter.shard().sub_(parameter.grad() + momentum_, lr_factor);
    momentum_.div_(2).add_(parameter.grad());
  }
  double lr() const override { return 1; }

 private:
  ModelPart& part_;
  at::Tensor momentum_;
};

class Falling final : public LrScheduler {
 public:
  double factor(int64_t step) const override { return 1.0 / static_cast<double>(step); }
};

class CountingWork final : public AfterOptimizerStep {
 public:
  void after_optimizer_step() override { ++count; }
  int count = 0;
};

/// A run of the trainer's own members, with gradients from the test.
class StepMembersTest : public ::testing::Test {
 protected:
  struct Simulated {
    explicit Simulated(bool in_float16) {
      run.device = testing::make_cpu();
      run.part = std::make_unique<ModelPart>(one_weight());
      run.part->materialize(c10::kCPU, at::kFloat, 1);
      run.optimizer = std::make_unique<Momentum>(*run.part);
      run.lr_scheduler = std::make_unique<Falling>();
      run.loss_scaler = std::make_unique<LossScaler>(
          LossScalingSection{.initial = 1024, .growth_interval = 2}, in_float16, true, run.state);
      run.after_optimizer_step = {&work};
      executor = std::make_unique<GivenGradients>(*run.part, told);
    }
    Verdict take(double gradient) {
      StepMembers members(run, JobConfig(), [this] { told += "before "; });
      StepRunner runner(*run.part, *executor, members.order(), run.mesh.group("world"), c10::kCPU);
      executor->gradient = gradient;
      step = {.number = run.state.step + 1};
      step.batches.num_valid_tokens = 10;
      step.batches.num_tokens = 12;
      return runner.run(step);
    }
    at::Tensor weight() const { return run.part->parameters().front()->shard().detach(); }

    core::Run run;  // GoogleTest has a Run of its own
    CountingWork work;
    std::string told;
    std::unique_ptr<GivenGradients> executor;
    Step step;
  };
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
};

/// Returns the verdicts that the test sets, one for each attempt, then commits.
class Repeats final : public StepMember {
 public:
  explicit Repeats(std::vector<Verdict> verdicts) : verdicts_(std::move(verdicts)) {}
  Judgement judge(const Step& step) override {
    const auto place = static_cast<size_t>(step.attempt - 1);
    return {place < verdicts_.size() ? verdicts_[place] : Verdict::commit, ""};
  }

 private:
  std::vector<Verdict> verdicts_;
};

TEST_F(StepMembersTest, ARepeatedStepLeavesNoTrace) {
  for (const bool in_float16 : {false, true}) {
    Simulated straight(in_float16), repeated(in_float16);
    for (int i = 0; i < 4; ++i) {
      std::vector<Verdict> verdicts;
      if (i == 1 || i == 3) verdicts = {Verdict::repeat, Verdict::repeat};
      Repeats repeats(verdicts);
      repeated.run.members = {&repeats};
      EXPECT_EQ(repeated.take(0.3 + i), Verdict::commit);
      EXPECT_EQ(straight.take(0.3 + i), Verdict::commit);
      EXPECT_TRUE(at::equal(repeated.weight(), straight.weight())) << "step " << i + 1;
      EXPECT_EQ(repeated.step.norm, straight.step.norm);
      EXPECT_EQ(repeated.step.lr_factor, straight.step.lr_factor);
      EXPECT_EQ(repeated.step.scalars.size(), in_float16 ? 1u : 0u);
      const TrainState &a = repeated.run.state, &b = straight.run.state;
      EXPECT_EQ(std::tie(a.step, a.lr_step, a.tokens_seen, a.tokens_learned, a.loss_scale,
                         a.loss_scale_steps),
                std::tie(b.step, b.lr_step, b.tokens_seen, b.tokens_learned, b.loss_scale,
                         b.loss_scale_steps));
      EXPECT_EQ(repeated.work.count, straight.work.count);
    }
    EXPECT_EQ(straight.told, "run before run before run before run before ");
  }
}

/// A plugin whose saved state changes at each commit.
class ChangesAtTheEnd final : public StepMember {
 public:
  explicit ChangesAtTheEnd(std::string& told) : told_(told) {}
  void commit(const Step&) override { told_ += "plugin "; }

 private:
  std::string& told_;
};

TEST_F(StepMembersTest, NothingThatIsSavedChangesWhileItIsStillCopied) {
  Simulated simulated(/*in_float16=*/false);
  ChangesAtTheEnd plugin(simulated.told);
  simulated.run.members = {&plugin};
  simulated.take(0.5);
  EXPECT_EQ(simulated.told, "run before plugin ");
}

TEST_F(StepMembersTest, AnOverflowSkipsTheUpdateButTheStepCounts) {
  Simulated simulated(/*in_float16=*/true);
  const at::Tensor before = simulated.weight().clone();
  EXPECT_EQ(simulated.take(kInfinite), Verdict::skip);
  EXPECT_TRUE(at::equal(simulated.weight(), before));
  EXPECT_EQ(simulated.work.count, 0);
  EXPECT_EQ(simulated.told, "run before ") << "plugins may change what is saved at skip, too";
  EXPECT_EQ(simulated.run.state.step, 1);
  EXPECT_EQ(simulated.run.state.lr_step, 1);
  EXPECT_EQ(simulated.run.state.tokens_seen, 12);
  EXPECT_EQ(simulated.run.state.tokens_learned, 10);
  EXPECT_EQ(simulated.run.state.loss_scale, 512);
  EXPECT_EQ(simulated.step.scalars.front().value, 1024) << "the value of the step";
  EXPECT_EQ(simulated.take(0.5), Verdict::commit);
  EXPECT_EQ(simulated.step.lr_factor, 0.5) << "of step 2";
}

TEST_F(StepMembersTest, AGradientThatIsNoNumberEndsTheRunBeforeTheWeightsChange) {
  Simulated simulated(/*in_float16=*/false);
  const at::Tensor before = simulated.weight().clone();
  EXPECT_THROW(simulated.take(kInfinite), Error);
  EXPECT_TRUE(at::equal(simulated.weight(), before));
  EXPECT_EQ(simulated.run.state.step, 0);
}

TEST(FiniteChecks, ShowANaNWithoutItsSign) {
  const Step step{.loss = {-std::nan("")}, .norm = -std::nan("")};
  const std::string loss =
      titan::testing::error_of([&] { FiniteLoss(true).judge(step); }).message();
  EXPECT_TRUE(titan::testing::holds(loss, "the loss is nan;"));
  const std::string norm = titan::testing::error_of([&] { FiniteNorm().judge(step); }).message();
  EXPECT_TRUE(titan::testing::holds(norm, "the gradient norm is nan at loss nan;"));
}

/// A guard on the gradient norm, like that of a plugin.
class SkipsLargeNorms final : public StepMember {
 public:
  Judgement judge(const Step& step) override {
    return {*step.norm > 5 ? Verdict::skip : Verdict::commit, ""};
  }
};

TEST_F(StepMembersTest, APluginSkipsWhatWouldEndTheRunAndTheScaleShrinksAllTheSame) {
  Simulated whole(/*in_float16=*/false), half(/*in_float16=*/true);
  SkipsLargeNorms guard;
  for (Simulated* simulated : {&whole, &half}) {
    simulated->run.members = {&guard};
    EXPECT_EQ(simulated->take(1), Verdict::commit);
    EXPECT_EQ(simulated->take(kInfinite), Verdict::skip);
    EXPECT_EQ(simulated->take(50), Verdict::skip) << "finite";
    EXPECT_EQ(simulated->run.state.step, 3);
  }
  EXPECT_EQ(half.run.state.loss_scale, 512) << "only by the step that overflowed";
  EXPECT_TRUE(at::equal(whole.weight(), half.weight()));
}

}  // namespace
}  // namespace titan::core
