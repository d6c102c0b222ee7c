// The stages of one step: their order, and which members are called when it is not committed.
#include "core/train/step/step_runner.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <titan/error.h>

#include "tests/core/train/step/step_fixture.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

/// Records its stages; returns `verdicts`, one for each attempt, then commits.
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

/// Gives `verdict` on behalf of other replica groups.
class OtherGroups final : public ReplicaMember {
 public:
  explicit OtherGroups(Verdict verdict) : verdict_(verdict) {}
  void join(ReplicaRun&, dist::Mesh&) override {}
  bool between_steps() override { return true; }
  void failed() noexcept override {}
  Judgement agree(const Step&, Judgement judgement) override {
    asked.push_back(judgement.verdict);
    return {.verdict = std::max(verdict_, judgement.verdict)};
  }
  std::vector<Verdict> asked;

 private:
  Verdict verdict_;
};

TEST_F(StepRunnerTest, UndoesAStepThatOtherGroupsDoNotFinish) {
  WritingMember first("a", told_), plugin("p", told_, {Verdict::skip}), last("z", told_);
  OtherGroups others(Verdict::restart);
  EXPECT_EQ(run({{&first}, {&plugin}, {&last}, &others}), Verdict::restart);
  EXPECT_EQ(others.asked, std::vector{Verdict::skip});
  EXPECT_TRUE(told_.ends_with("p.judge a.abort p.abort z.abort ")) << told_;
  EXPECT_FALSE(part_.parameters().front()->grad().defined());

  told_.clear();
  OtherGroups fine(Verdict::commit);
  WritingMember willing("p", told_);
  EXPECT_EQ(run({{}, {&willing}, {}, &fine}), Verdict::commit);
  EXPECT_TRUE(told_.ends_with("p.judge p.commit ")) << told_;
}

TEST_F(StepRunnerTest, ReportsEachAttemptThatDoesNotChangeTheWeights) {
  WritingMember plugin("p", told_, {Verdict::repeat, Verdict::skip});
  const StepOrder order{{}, {&plugin}, {}};
  StepRunner runner(part_, executor_, order, mesh_.group("world"), c10::kCPU);
  std::string undone;
  runner.on_undone([&](const Step& step, const Judgement& judgement) {
    undone += std::to_string(step.number) + "." + std::to_string(step.attempt) +
              (judgement.verdict == Verdict::skip ? " skip " : " repeat ") + judgement.reason +
              ", ";
  });
  for (const int64_t number : {5, 6}) {
    step_ = {.number = number};
    runner.run(step_);
    EXPECT_EQ(undone, "5.1 repeat the test's own, 5.2 skip the test's own, " +
                          std::string(number == 5 ? ""
                                                  : "6.1 repeat the test's own, "
                                                    "6.2 skip the test's own, "));
  }
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

/// Throws in one stage. Records the call of `abort`, and throws there too.
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
      EXPECT_EQ(error.message(), "failed in " + stage);  // not the error of abort
    }
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    const bool is_undone = stage != "commit";  // weights change directly after it
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

}  // namespace
}  // namespace titan::core
