#include "core/train/logger_set.h"

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

/// Counts calls into what the test owns; throws in log() from a given step on.
class CountingLogger final : public Logger {
 public:
  struct Counts {
    int starts = 0, logs = 0, finishes = 0;
    RunOutcome outcome = RunOutcome::finished;
  };
  explicit CountingLogger(Counts& counts, int64_t fails_from = 1000)
      : counts_(counts), fails_from_(fails_from) {}
  void start(const RunInfo&) override { ++counts_.starts; }
  void log(int64_t step, std::span<const Scalar>) override {
    if (step >= fails_from_) throw Error(ErrorKind::io, "disk full");
    ++counts_.logs;
  }
  void finish(RunOutcome outcome) noexcept override {
    ++counts_.finishes;
    counts_.outcome = outcome;
  }

 private:
  Counts& counts_;
  int64_t fails_from_;
};

TEST(LoggerSet, DropsALoggerThatFailsAndKeepsTheOthers) {
  CountingLogger::Counts good, bad;
  LoggerSet loggers;
  loggers.add("bad", std::make_unique<CountingLogger>(bad, 2));
  loggers.add("good", std::make_unique<CountingLogger>(good));
  loggers.start({});
  ::testing::internal::CaptureStderr();
  for (int64_t step = 1; step <= 4; ++step) loggers.log(step, {});
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  loggers.finish(RunOutcome::stopped);

  EXPECT_EQ(bad.logs, 1);
  EXPECT_EQ(bad.finishes, 1);
  EXPECT_EQ(bad.outcome, RunOutcome::failed);
  EXPECT_EQ(good.logs, 4);
  EXPECT_EQ(good.outcome, RunOutcome::stopped);
  EXPECT_NE(warnings.find("logger 'bad' failed"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("disk full"), warnings.rfind("disk full")) << "said once";
}

TEST(LoggerSet, FinishesEachLoggerOnce) {
  CountingLogger::Counts counts;
  LoggerSet loggers;
  loggers.add("one", std::make_unique<CountingLogger>(counts));
  loggers.start({});
  loggers.finish(RunOutcome::finished);
  loggers.finish(RunOutcome::failed);
  EXPECT_EQ(counts.finishes, 1);
  EXPECT_EQ(counts.outcome, RunOutcome::finished);
}

}  // namespace
}  // namespace titan::core
