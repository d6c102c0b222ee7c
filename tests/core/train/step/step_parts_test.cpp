// Plugins in a step: wrappers nest, and incompatible plugins are refused by name.
#include "core/train/step/step_parts.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <titan/error.h>

#include "core/config/selection/component_error.h"
#include "core/train/optimizer/optimizer_set.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

/// A transform that changes nothing.
template <class... Abilities>
class Idle : public Converter, public Abilities... {
 public:
  Phase phase() const override { return Phase::data; }
  void apply(ModelPart&, const TransformContext&) override {}
};

class Runs final : public Idle<StepExecutor> {
 public:
  explicit Runs(std::string& told) : told_(told) {}
  void connect(StepContext) override { told_ += "connect "; }
  StepLoss forward_backward(const StepBatches&) override {
    told_ += "run ";
    return {};
  }
  StepLoss forward(const StepBatches&) override {
    told_ += "forward ";
    return {};
  }

 private:
  std::string& told_;
};

class GoesAround final : public Idle<ExecutorWrapper> {
 public:
  GoesAround(std::string name, std::string& told) : name_(std::move(name)), told_(told) {}
  StepLoss forward_backward(const StepBatches& batches) override {
    told_ += name_ + "( ";
    inner().forward_backward(batches);
    told_ += ") ";
    return {};
  }
  bool undoes_steps() const override { return repeats; }
  bool repeats = true;

 private:
  std::string name_;
  std::string& told_;
};

class TakesPart final : public Idle<StepMember> {
 public:
  bool undoes_steps() const override { return undoes; }
  bool undoes = true;
};

Selection converter(const std::string& name) {
  return {.kind = "converter", .name = name, .options = {}, .where = {}};
}

class StepPartsTest : public ::testing::Test {
 protected:
  StepExecutor& connect(StepParts& parts) {
    return parts.connect(part_, *device_, recorder_, workers_);
  }
  static std::string refusal(const std::function<void()>& work) {
    try {
      work();
    } catch (const ComponentError& error) {
      return error.component().name + ": " + error.what();
    }
    return "";
  }
  static JobConfig early() {
    JobConfig config;
    config.optimizer_section.early_step_in_backward = true;
    return config;
  }

  std::string told_;
  const std::unique_ptr<Device> device_ = titan::testing::make_cpu();
  ModelPart part_{std::vector<Layer>()};
  dist::Recorder recorder_;
  StepWorkers workers_;
};

TEST_F(StepPartsTest, WrappersNestAndTheLastIsOutermost) {
  StepParts parts{JobConfig()};
  GoesAround guard("guard", told_), timer("timer", told_);
  Runs runs(told_);
  const Selection a = converter("a"), b = converter("b"), c = converter("c");
  parts.add(guard, a);
  parts.add(runs, b);
  parts.add(timer, c);
  StepExecutor& outermost = connect(parts);
  EXPECT_EQ(workers_.sequential, nullptr);
  outermost.forward_backward({});
  outermost.forward({});
  EXPECT_EQ(told_, "connect timer( guard( run ) ) forward ");
}

TEST_F(StepPartsTest, WrappersGoAroundTheSequentialOneWhereNothingElseRuns) {
  StepParts parts{JobConfig()};
  GoesAround guard("guard", told_);
  const Selection a = converter("a");
  parts.add(guard, a);
  EXPECT_EQ(&connect(parts), &guard);
  ASSERT_NE(workers_.sequential, nullptr);
  guard.forward_backward({});
  EXPECT_EQ(told_, "guard( ) ");
}

TEST_F(StepPartsTest, RefusesASecondThatRunsTheMicrobatchesAndNamesBoth) {
  StepParts parts{JobConfig()};
  Runs one(told_), other(told_);
  const Selection a = converter("acme/one"), b = converter("acme/other");
  parts.add(one, a);
  EXPECT_EQ(refusal([&] { parts.add(other, b); }),
            "acme/other: converter 'acme/one' and converter 'acme/other' both run the microbatches "
            "of a step; choose one of them, or let one wrap the other "
            "(titan::ExecutorWrapper)");
}

TEST_F(StepPartsTest, RefusesWhatUndoesStepsBesideAnOptimizerInsideTheBackward) {
  StepParts parts{early()};
  TakesPart member;
  GoesAround guard("guard", told_);
  const Selection a = converter("acme/votes"), b = converter("acme/guard");
  const std::string why =
      " may repeat or skip a step, but with optimizer.early_step_in_backward = true "
      "weights change inside the backward and no step can be undone; switch off one of them";
  EXPECT_EQ(refusal([&] { parts.add(member, a); }), "acme/votes: converter 'acme/votes'" + why);
  EXPECT_EQ(refusal([&] { parts.add(guard, b); }), "acme/guard: converter 'acme/guard'" + why);
  member.undoes = guard.repeats = false;
  EXPECT_EQ(refusal([&] { parts.add(member, a); }), "");
  EXPECT_EQ(refusal([&] { parts.add(guard, b); }), "");
  EXPECT_EQ(parts.members(), std::vector<StepMember*>{&member});
  connect(parts);
  EXPECT_NE(workers_.local_gradients, nullptr)
      << "some part must report when a gradient is complete";
}

/// An optimizer that takes part in steps.
class Voting final : public Optimizer, public StepMember {
 public:
  void step(double) override {}
  double lr() const override { return 1; }
};

TEST_F(StepPartsTest, FindsTheMembersAmongJoinedOptimizers) {
  std::vector<std::unique_ptr<Optimizer>> members;
  for (int i = 0; i < 2; ++i) members.push_back(std::make_unique<Voting>());
  const auto* first = dynamic_cast<const StepMember*>(members.front().get());
  OptimizerSet set(std::move(members));
  StepParts parts{JobConfig()};
  const Selection chosen{.kind = "optimizer", .name = "acme/votes", .options = {}, .where = {}};
  parts.add(set, chosen);
  ASSERT_EQ(parts.members().size(), 2u);
  EXPECT_EQ(parts.members().front(), first);
  StepParts refusing{early()};
  EXPECT_TRUE(refusal([&] {
                refusing.add(set, chosen);
              }).starts_with("acme/votes: optimizer 'acme/votes' may repeat or skip a step"));
}

}  // namespace
}  // namespace titan::core
