// Modules that take part in steps: which modules do, the order of their calls, and that a step
// without a commit changes nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/nn/step_module.h>
#include <titan/recompute.h>

#include "core/config/selection/component_error.h"
#include "core/train/step/step_parts.h"
#include "core/train/step/step_runner.h"
#include "tests/plugins/error_of.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

/// Records its stages; counts tokens, and adds the count to a state at a commit.
class CountingModule final : public nn::Module, public nn::StepModule {
 public:
  explicit CountingModule(std::string& told)
      : told_(told),
        weight_(add_parameter("weight", {1}, nn::Init::constant(2))),
        total_(add_state("total", {1}, nn::Init::constant(0))) {}
  bool undoes_steps() const override { return undoes; }
  void connect(const dist::Mesh& mesh) override {
    told_ += "connect" + std::to_string(mesh.group("world").size()) + " ";
  }
  void begin_run() override {
    told_ += "run ";
    counted_ = 0;
  }
  void commit(const Step&) override {
    told_ += "commit ";
    total_.value().add_(static_cast<double>(counted_));
  }
  void skip(const Step&) override { told_ += "skip "; }
  void abort(const Step&) override { told_ += "abort "; }
  double total() const { return total_.value().item<double>(); }

  bool undoes = false;

 protected:
  at::Tensor forward(const at::Tensor&, const Batch& batch) override {
    if (is_first_run()) counted_ += batch.tokens.numel();
    return (weight_.value() * batch.tokens.to(at::kFloat)).sum();
  }

 private:
  std::string& told_;
  nn::Parameter& weight_;
  nn::Parameter& total_;
  int64_t counted_ = 0;
};

/// Replaces a CountingModule.
class TakesItsPlace final : public nn::Module {
 public:
  explicit TakesItsPlace(nn::Module& replaced) {
    adopt_parameter("weight", replaced.shared_parameter("weight"));
    adopt_parameter("total", replaced.shared_parameter("total"));
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

/// Returns the verdicts that the test sets, then commits.
class Judges final : public StepMember {
 public:
  Judgement judge(const Step&) override {
    if (verdicts.empty()) return {};
    const Verdict next = verdicts.back();
    verdicts.pop_back();
    return {.verdict = next, .reason = "told to"};
  }
  std::vector<Verdict> verdicts;
};

class StepModulesTest : public ::testing::Test {
 protected:
  StepModulesTest() {
    std::vector<Layer> layers;
    auto module = std::make_unique<CountingModule>(told_);
    module_ = module.get();
    layers.push_back({"layer", std::move(module), "layer"});
    part_.emplace(std::move(layers));
  }
  /// Adds the modules and connects them; null when they are refused.
  StepExecutor* connect(const JobConfig& config = {}) {
    StepParts parts(config);
    const Selection model{.kind = "model", .name = "acme/counts", .options = {}, .where = {}};
    parts.add_modules(*part_, mesh_, model);
    members_ = parts.members();
    StepExecutor& executor = parts.connect(*part_, *device_, mesh_.recorder(), workers_);
    part_->materialize(c10::kCPU, at::kFloat, 1);
    return &executor;
  }
  static StepBatches four_tokens() {
    const Batch batch = {.tokens = at::tensor({1, 2}, at::kLong).unsqueeze(0)};
    return {.microbatches = {batch, batch}, .num_valid_tokens = 4, .num_local_valid_tokens = 4};
  }
  Verdict run(StepExecutor& executor, std::vector<Verdict> verdicts = {}) {
    Judges judges;
    judges.verdicts = std::move(verdicts);
    StepOrder order;
    order.plugins = members_;
    order.plugins.push_back(&judges);
    StepRunner runner(*part_, executor, order, mesh_.group("world"), c10::kCPU);
    Step step{.number = 1, .batches = four_tokens()};
    return runner.run(step);
  }

  std::string told_;
  CountingModule* module_ = nullptr;
  const dist::Mesh mesh_;
  const std::unique_ptr<Device> device_ = titan::testing::make_cpu();
  std::optional<ModelPart> part_;
  StepWorkers workers_;
  std::vector<StepMember*> members_;
};

TEST_F(StepModulesTest, AreConnectedOnceAndCommitWhatTheyCounted) {
  StepExecutor* const executor = connect();
  EXPECT_EQ(run(*executor), Verdict::commit);
  EXPECT_EQ(told_, "connect1 run commit ");
  EXPECT_EQ(module_->total(), 4);
  EXPECT_EQ(run(*executor), Verdict::commit);
  EXPECT_EQ(module_->total(), 8) << "counters start again";
}

TEST_F(StepModulesTest, MoveNothingInAStepThatIsLeftOutOrThrownAway) {
  StepExecutor* const executor = connect();
  EXPECT_EQ(run(*executor, {Verdict::skip}), Verdict::skip);
  EXPECT_EQ(module_->total(), 0);
  EXPECT_EQ(run(*executor, {Verdict::repeat}), Verdict::commit);
  EXPECT_EQ(told_, "connect1 run skip run abort run commit ");
  EXPECT_EQ(module_->total(), 4) << "the discarded attempt does not count";
}

TEST_F(StepModulesTest, BeginAnewWhereAWrapperRunsTheStepAgain) {
  StepExecutor* const executor = connect();
  executor->forward_backward(four_tokens());
  part_->clear_gradients();
  run(*executor);
  EXPECT_EQ(module_->total(), 4);
}

TEST_F(StepModulesTest, DoNotCountValidation) {
  StepExecutor* const executor = connect();
  executor->forward(four_tokens());
  run(*executor);
  executor->forward(four_tokens());
  EXPECT_EQ(module_->total(), 4);
  EXPECT_EQ(told_, "connect1 run commit ");
}

TEST_F(StepModulesTest, AreThoseThatRun) {
  part_->replace("layer", std::make_unique<TakesItsPlace>(*module_));
  connect();
  EXPECT_TRUE(members_.empty());
  EXPECT_EQ(told_, "");
  EXPECT_EQ(workers_.module_runs, nullptr);
}

TEST_F(StepModulesTest, ThatUndoStepsAreRefusedBesideAnOptimizerInsideTheBackward) {
  JobConfig early;
  early.optimizer_section.early_step_in_backward = true;
  EXPECT_NE(connect(early), nullptr);
  module_->undoes = true;
  EXPECT_TRUE(holds(error_of([&] {
                      StepParts parts(early);
                      parts.add_modules(
                          *part_, mesh_,
                          {.kind = "model", .name = "acme/counts", .options = {}, .where = {}});
                    }).message(),
                    "model 'acme/counts' may repeat or skip a step"));
}

}  // namespace
}  // namespace titan::core
