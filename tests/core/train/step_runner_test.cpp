// One step through its stages: their order, and that a step which is not committed leaves no trace.
#include "core/train/step_runner.h"

#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "core/train/step_members.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

class OneWeight final : public nn::Module {
 public:
  OneWeight() { add_parameter("weight", {3}, nn::Init::constant(2)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

std::vector<Layer> one_weight() {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<OneWeight>(), "layer"});
  return layers;
}

/// Gives every weight the gradient `gradient` times the step's scale, and the loss 7.
class GivenGradients final : public StepExecutor {
 public:
  GivenGradients(ModelPart& part, std::string& told) : part_(part), told_(told) {}
  void connect(StepContext) override {}
  StepLoss forward_backward(const StepBatches& batches) override {
    told_ += "run ";
    const nn::Parameter& parameter = *part_.parameters().front();
    EXPECT_FALSE(parameter.grad().defined()) << "of an attempt before";
    parameter.shard().mutable_grad() = at::full({3}, gradient * batches.gradient_scale);
    seen = &batches.microbatches;
    return {7};
  }
  StepLoss forward(const StepBatches&) override { return {}; }

  double gradient = 1;
  const std::vector<Batch>* seen = nullptr;

 private:
  ModelPart& part_;
  std::string& told_;
};

/// Writes down its stages; judges as `verdicts` say, one for each attempt, then commits.
class WritingMember final : public StepMember {
 public:
  WritingMember(std::string name, std::string& told, std::vector<Verdict> verdicts = {})
      : name_(std::move(name)), told_(told), verdicts_(std::move(verdicts)) {}

  bool undoes_steps() const override { return admits_it; }
  void begin(Step& step) override {
    EXPECT_EQ(step.lr_factor, 1);
    EXPECT_TRUE(step.scalars.empty() && !step.norm);
    tell("begin");
  }
  void reduced(Step& step) override {
    EXPECT_EQ(step.loss.normalized_sum, 7);
    tell("reduced");
  }
  Judgement judge(const Step& step) override {
    tell("judge");
    const auto place = static_cast<size_t>(step.attempt - 1);
    return {.verdict = place < verdicts_.size() ? verdicts_[place] : Verdict::commit,
            .reason = "the test's own"};
  }
  void commit(const Step&) override { tell("commit"); }
  void skip(const Step&) override { tell("skip"); }
  void abort(const Step&) override { tell("abort"); }

  bool admits_it = true;

 private:
  void tell(const std::string& stage) { told_ += name_ + "." + stage + " "; }

  std::string name_;
  std::string& told_;
  std::vector<Verdict> verdicts_;
};

class StepRunnerTest : public ::testing::Test {
 protected:
  StepRunnerTest() : part_(one_weight()), executor_(part_, told_) {
    part_.materialize(c10::kCPU, at::kFloat, 1);
  }
  Verdict run(const StepOrder& order, int64_t number = 5) {
    step_ = {.number = number};
    return StepRunner(part_, executor_, order, mesh_.group("world"), c10::kCPU).run(step_);
  }

  const dist::Mesh mesh_;
  std::string told_;
  ModelPart part_;
  GivenGradients executor_;
  Step step_;
};

TEST_F(StepRunnerTest, AsksPluginsFirstAndCommitsInOrder) {
  WritingMember first("a", told_), plugin("p", told_), last("z", told_);
  EXPECT_EQ(run({{&first}, {&plugin}, {&last}}), Verdict::commit);
  EXPECT_EQ(told_,
            "a.begin p.begin z.begin run a.reduced p.reduced z.reduced p.judge a.judge z.judge "
            "a.commit p.commit z.commit ");
  EXPECT_FALSE(part_.parameters().front()->grad().defined());
  EXPECT_EQ(step_.attempt, 1);
}

TEST_F(StepRunnerTest, RunsARepeatedStepAgainOnTheSameBatches) {
  WritingMember plugin("p", told_, {Verdict::repeat, Verdict::repeat}), last("z", told_);
  EXPECT_EQ(run({{}, {&plugin}, {&last}}), Verdict::commit);
  const std::string attempt = "p.begin z.begin run p.reduced z.reduced p.judge ";
  const std::string again = attempt + "p.abort z.abort ";
  EXPECT_EQ(told_, again + again + attempt + "z.judge p.commit z.commit ");
  EXPECT_EQ(step_.attempt, 3);
  EXPECT_EQ(executor_.seen, &step_.batches.microbatches);
}

TEST_F(StepRunnerTest, TakesTheGreatestVerdictAndAsksItsOwnOnlyUntilOneDoesNotCommit) {
  WritingMember p("p", told_, {Verdict::skip, Verdict::skip}), q("q", told_, {Verdict::repeat});
  WritingMember first("a", told_), last("z", told_);
  EXPECT_EQ(run({{&first}, {&p, &q}, {&last}}), Verdict::skip);
  EXPECT_EQ(told_.find("a.judge"), std::string::npos);
  EXPECT_NE(told_.find("a.abort p.abort q.abort z.abort "), std::string::npos);
  EXPECT_TRUE(told_.ends_with("p.judge q.judge a.skip p.skip q.skip z.skip ")) << told_;

  told_.clear();
  WritingMember skips("s", told_, {Verdict::skip});
  EXPECT_EQ(run({{&first, &skips}, {}, {&last}}), Verdict::skip);
  EXPECT_EQ(told_.find("z.judge"), std::string::npos);
}

TEST_F(StepRunnerTest, EndsARunWhoseStepIsRepeatedForever) {
  WritingMember plugin("p", told_, std::vector<Verdict>(1000, Verdict::repeat));
  try {
    run({{}, {&plugin}, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what())
                  .find("step 5 was run 100 times and is to be repeated "
                        "again: the test's own"),
              std::string::npos)
        << error.what();
  }
}

/// Throws in one stage; says in `abort` that it was told, and throws there too.
class FailingMember final : public StepMember {
 public:
  FailingMember(std::string stage, std::string& told) : stage_(std::move(stage)), told_(told) {}
  void begin(Step&) override { fail_in("begin"); }
  void reduced(Step&) override { fail_in("reduced"); }
  Judgement judge(const Step&) override {
    fail_in("judge");
    return {};
  }
  void commit(const Step&) override { fail_in("commit"); }
  void abort(const Step&) override {
    told_ += "f.abort ";
    throw Error(ErrorKind::internal, "and cannot undo it");
  }

 private:
  void fail_in(const std::string& stage) const {
    if (stage == stage_) throw Error(ErrorKind::io, "failed in " + stage);
  }
  std::string stage_;
  std::string& told_;
};

TEST_F(StepRunnerTest, HasMembersAbortAStepThatFails) {
  for (const std::string stage : {"begin", "reduced", "judge", "commit"}) {
    SCOPED_TRACE(stage);
    part_.clear_gradients();
    told_.clear();
    WritingMember first("a", told_), last("z", told_);
    FailingMember fails(stage, told_);
    ::testing::internal::CaptureStderr();
    try {
      run({{&first}, {&fails}, {&last}});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "failed in " + stage);  // not what abort says
    }
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    const bool is_undone = stage != "commit";  // weights change right after it
    EXPECT_EQ(warnings.find("and cannot undo it") != std::string::npos, is_undone) << warnings;
    const std::string end = stage == "begin" ? "a.abort f.abort " : "a.abort f.abort z.abort ";
    EXPECT_EQ(told_.ends_with(end), is_undone) << told_;
    EXPECT_EQ(told_.find("z.abort") != std::string::npos, is_undone && stage != "begin") << told_;
  }
}

TEST_F(StepRunnerTest, RefusesAVerdictOfAMemberThatSaidItHasNone) {
  WritingMember plugin("p", told_, {Verdict::skip});
  plugin.admits_it = false;
  EXPECT_THROW(run({{}, {&plugin}, {}}), Error);
}

TEST(StepRunner, RepeatsOnAllRanksWhatOneOfThemAsksFor) {
  std::mutex mutex;
  testing::run_ranks({.dp_replicate = 3}, [&](const dist::Mesh& mesh) {
    std::string told;
    ModelPart part(one_weight());
    part.materialize(c10::kCPU, at::kFloat, 1);
    GivenGradients executor(part, told);
    std::vector<Verdict> verdicts;
    if (mesh.rank() == 1) verdicts = {Verdict::repeat};
    if (mesh.rank() == 2) verdicts = {Verdict::skip, Verdict::skip};
    WritingMember plugin("p", told, verdicts);
    Step step{.number = 1};
    StepRunner runner(part, executor, {{}, {&plugin}, {}}, mesh.group("world"), c10::kCPU);
    const Verdict verdict = runner.run(step);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(verdict, Verdict::skip);
    EXPECT_EQ(step.attempt, 2);
    EXPECT_NE(told.find("p.abort p.begin"), std::string::npos) << told;
  });
}

TEST(StepRunner, CostsNoReductionWhereNobodyVotes) {
  testing::run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    std::string told;
    ModelPart part(one_weight());
    part.materialize(c10::kCPU, at::kFloat, 1);
    GivenGradients executor(part, told);
    WritingMember watcher("w", told);
    watcher.admits_it = false;
    Step step{.number = 1};
    StepRunner(part, executor, {{}, {&watcher}, {}}, mesh.group("world"), c10::kCPU).run(step);
    EXPECT_EQ(mesh.recorder().total_bytes(), 0);
  });
}

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

/// A run of the trainer's own members, with gradients that are given.
class StepMembersTest : public ::testing::Test {
 protected:
  struct Played {
    explicit Played(bool in_float16) {
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

/// Judges as it is told, one verdict for each attempt, then commits.
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
    Played straight(in_float16), repeated(in_float16);
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
      EXPECT_EQ(std::tie(a.step, a.lr_step, a.tokens_seen, a.loss_scale, a.loss_scale_steps),
                std::tie(b.step, b.lr_step, b.tokens_seen, b.loss_scale, b.loss_scale_steps));
      EXPECT_EQ(repeated.work.count, straight.work.count);
    }
    EXPECT_EQ(straight.told, "run before run before run before run before ");
  }
}

/// A plugin that changes what is saved when a step counts.
class ChangesAtTheEnd final : public StepMember {
 public:
  explicit ChangesAtTheEnd(std::string& told) : told_(told) {}
  void commit(const Step&) override { told_ += "plugin "; }

 private:
  std::string& told_;
};

TEST_F(StepMembersTest, NothingThatIsSavedChangesWhileItIsStillCopied) {
  Played played(/*in_float16=*/false);
  ChangesAtTheEnd plugin(played.told);
  played.run.members = {&plugin};
  played.take(0.5);
  EXPECT_EQ(played.told, "run before plugin ");
}

TEST_F(StepMembersTest, AnOverflowSkipsTheUpdateButTheStepCounts) {
  Played played(/*in_float16=*/true);
  const at::Tensor before = played.weight().clone();
  EXPECT_EQ(played.take(kInfinite), Verdict::skip);
  EXPECT_TRUE(at::equal(played.weight(), before));
  EXPECT_EQ(played.work.count, 0);
  EXPECT_EQ(played.told, "run before ") << "plugins may change what is saved at skip, too";
  EXPECT_EQ(played.run.state.step, 1);
  EXPECT_EQ(played.run.state.lr_step, 1);
  EXPECT_EQ(played.run.state.tokens_seen, 10);
  EXPECT_EQ(played.run.state.loss_scale, 512);
  EXPECT_EQ(played.step.scalars.front().value, 1024) << "that of the step";
  EXPECT_EQ(played.take(0.5), Verdict::commit);
  EXPECT_EQ(played.step.lr_factor, 0.5) << "of step 2";
}

TEST_F(StepMembersTest, AGradientThatIsNoNumberEndsTheRunBeforeTheWeightsChange) {
  Played played(/*in_float16=*/false);
  const at::Tensor before = played.weight().clone();
  EXPECT_THROW(played.take(kInfinite), Error);
  EXPECT_TRUE(at::equal(played.weight(), before));
  EXPECT_EQ(played.run.state.step, 0);
}

/// A guard over the norm, as a plugin would be one.
class SkipsLargeNorms final : public StepMember {
 public:
  Judgement judge(const Step& step) override {
    return {*step.norm > 5 ? Verdict::skip : Verdict::commit, ""};
  }
};

TEST_F(StepMembersTest, APluginSkipsWhatWouldEndTheRunAndTheScaleShrinksAllTheSame) {
  Played whole(/*in_float16=*/false), half(/*in_float16=*/true);
  SkipsLargeNorms guard;
  for (Played* played : {&whole, &half}) {
    played->run.members = {&guard};
    EXPECT_EQ(played->take(1), Verdict::commit);
    EXPECT_EQ(played->take(kInfinite), Verdict::skip);
    EXPECT_EQ(played->take(50), Verdict::skip) << "finite";
    EXPECT_EQ(played->run.state.step, 3);
  }
  EXPECT_EQ(half.run.state.loss_scale, 512) << "by the step that overflowed alone";
  EXPECT_TRUE(at::equal(whole.weight(), half.weight()));
}

}  // namespace
}  // namespace titan::core
