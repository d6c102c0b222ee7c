// Loggers on their own threads: the calls that they receive, and that a failing, hanging or slow
// logger does not delay the run. Hanging loggers wait at gates that the tests open.
#include "core/train/logging/logger_set.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::core {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

/// Blocks callers of pass() until the test opens it.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++num_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --num_waiting_;
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return num_waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int num_waiting_ = 0;
};

/// The calls of a logger, in order, as text; and an action to run at each call.
struct Told {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::function<void(const std::string&)> act = [](const std::string&) {};

  void add(const std::string& call) {
    {
      const std::lock_guard lock(mutex);
      calls.push_back(call);
    }
    act(call);
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex);
    return calls;
  }
  size_t count(const std::string& call) {
    size_t count = 0;
    for (const std::string& each : all()) count += each == call ? 1 : 0;
    return count;
  }
  void wait_for(const std::string& call) {
    while (count(call) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

class ToldLogger final : public Logger {
 public:
  explicit ToldLogger(std::shared_ptr<Told> told, bool follows = false)
      : told_(std::move(told)), follows_(follows) {}
  void start(const RunInfo& run) override { told_->add("start " + run.description); }
  void log(int64_t step, std::span<const Scalar> scalars) override {
    std::string call = "log " + std::to_string(step);
    for (const Scalar& scalar : scalars)
      call += " " + std::string(scalar.tag) + "=" + std::to_string(static_cast<int>(scalar.value));
    told_->add(call);
  }
  void log_histograms(int64_t step, std::span<const Histogram> histograms) override {
    std::string call = "histograms " + std::to_string(step);
    for (const Histogram& histogram : histograms)
      call += " " + std::string(histogram.tag) + ":" + std::to_string(histogram.counts.size());
    told_->add(call);
  }
  bool follows_steps() const override { return follows_; }
  void step_done(const StepProgress& progress) override {
    told_->add("done " + std::to_string(progress.step));
  }
  void finish(RunOutcome outcome) noexcept override {
    told_->add("finish " + std::to_string(static_cast<int>(outcome)));
  }

 private:
  std::shared_ptr<Told> told_;
  bool follows_;
};

struct Loggers {
  explicit Loggers(const LoggerLimits& limits = {}) : set(limits) {}
  /// A logger that calls `act` with the text of each call.
  std::shared_ptr<Told> add(const std::string& name,
                            std::function<void(const std::string&)> act = {},
                            bool follows = false) {
    auto told = std::make_shared<Told>();
    if (act) told->act = std::move(act);
    set.add(name, std::make_shared<ToldLogger>(told, follows));
    return told;
  }
  void log(int64_t step) { set.log(step, {}); }

  LoggerSet set;
};

using Calls = std::vector<std::string>;

TEST(LoggerSet, TellsEveryLoggerAllInOrder) {
  Loggers loggers;
  const auto one = loggers.add("one"), two = loggers.add("two");
  loggers.set.start({.description = "a run"});
  {
    const std::string tag(100, 'x');  // destroyed before the logger sees the call
    const Scalar scalars[] = {{tag, 1}, {"lr", 2}};
    loggers.set.log(1, scalars);
    const Histogram histogram{tag, {0, 1, 2}, {3, 4}};
    loggers.set.log_histograms(1, {&histogram, 1});
  }
  loggers.log(2);
  loggers.set.finish(RunOutcome::stopped);
  const std::string tag(100, 'x');
  const Calls wanted = {"start a run", "log 1 " + tag + "=1 lr=2", "histograms 1 " + tag + ":2",
                        "log 2", "finish 1"};
  EXPECT_EQ(one->all(), wanted);
  EXPECT_EQ(two->all(), wanted);
}

/// Adds calls of log_time().
class TimedLogger final : public Logger {
 public:
  explicit TimedLogger(std::vector<double>& times) : times_(times) {}
  void start(const RunInfo&) override {}
  void log(int64_t, std::span<const Scalar>) override { times_.push_back(log_time()); }
  void finish(RunOutcome) noexcept override {}

 private:
  std::vector<double>& times_;
};

TEST(LoggerSet, TellsWhenSomethingWasLogged) {
  std::vector<double> times;
  LoggerSet loggers;
  loggers.add("timed", std::make_shared<TimedLogger>(times));
  std::vector<double> wanted;
  for (int64_t step = 1; step <= 3; ++step) {
    wanted.push_back(wall_seconds());
    loggers.log(step, {});
  }
  wanted.push_back(wall_seconds());
  loggers.finish(RunOutcome::finished);
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GE(times[i], wanted[i]);
    EXPECT_LE(times[i], wanted[i + 1]) << "the time of the call, not of its thread";
  }
}

TEST(LoggerSet, DropsALoggerThatFailsAndKeepsTheOthers) {
  Loggers loggers;
  const auto bad = loggers.add("bad", [](const std::string& call) {
    if (call == "log 2") throw Error(ErrorKind::io, "disk full");
  });
  const auto odd = loggers.add("odd", [](const std::string& call) {
    if (call == "log 2") throw 17;
  });
  const auto good = loggers.add("good");
  CaptureStderr();
  loggers.set.start({});
  for (int64_t step = 1; step <= 4; ++step) {
    loggers.log(step);
    loggers.set.flush();
  }
  loggers.set.finish(RunOutcome::finished);
  const std::string said = GetCapturedStderr();

  EXPECT_EQ(bad->all(), (Calls{"start ", "log 1", "log 2", "finish 2"}));
  EXPECT_EQ(good->all(), (Calls{"start ", "log 1", "log 2", "log 3", "log 4", "finish 0"}));
  EXPECT_NE(said.find("logger 'bad' failed and is off from here on; training continues: disk full"),
            said.npos)
      << said;
  EXPECT_EQ(said.find("disk full"), said.rfind("disk full")) << "said once";
  EXPECT_NE(said.find("logger 'bad' missed 2 entries after it had failed"), said.npos) << said;
  EXPECT_NE(
      said.find("logger 'odd' failed and is off from here on; training continues: an exception "
                "of unknown type"),
      said.npos)
      << said;
}

TEST(LoggerSet, WhoFailsAtTheStartIsToldNothingElse) {
  Loggers loggers;
  const auto bad = loggers.add("bad", [](const std::string& call) {
    if (call == "start ") throw std::runtime_error("no server");
  });
  CaptureStderr();
  loggers.set.start({});
  loggers.log(1);
  loggers.set.finish(RunOutcome::finished);
  const std::string said = GetCapturedStderr();
  EXPECT_EQ(bad->all(), (Calls{"start ", "finish 2"}));
  EXPECT_NE(said.find("no server"), said.npos) << said;
  EXPECT_NE(said.find("missed 1 entry after"), said.npos) << said;
}

TEST(LoggerSet, ALoggerThatHangsHoldsNobody) {
  auto gate = std::make_shared<Gate>();
  Loggers loggers({.most_waiting = 3, .finish_wait = 0.05});
  const auto stuck = loggers.add("stuck", [gate](const std::string& call) {
    if (call == "start ") gate->pass();
  });
  const auto good = loggers.add("good");
  CaptureStderr();
  loggers.set.start({});
  gate->wait_for_somebody();
  for (int64_t step = 1; step <= 8; ++step) {
    loggers.log(step);
    while (good->count("log " + std::to_string(step)) == 0)
      std::this_thread::yield();  // until the good logger has taken the entry
  }
  loggers.set.finish(RunOutcome::finished);
  const std::string said = GetCapturedStderr();

  EXPECT_EQ(stuck->all(), Calls{"start "});
  EXPECT_NE(said.find("logger 'stuck' is too slow: 3 entries wait for it, and those that come are "
                      "dropped until it catches up; training continues"),
            said.npos)
      << said;
  EXPECT_EQ(said.find("is too slow:"), said.rfind("is too slow:")) << "said once";
  EXPECT_NE(said.find("logger 'stuck' did not finish within 0.05 s and was abandoned; "
                      "3 entries waited for it and are lost; was too slow for 5 entries"),
            said.npos)
      << said;
  gate->open();  // the logger returns after the run has ended, and gets no more calls
}

TEST(LoggerSet, ASaveWaitsOnceForALoggerThatIsLate) {
  using namespace std::chrono_literals;
  auto gate = std::make_shared<Gate>();
  Loggers loggers;
  const auto stuck = loggers.add("stuck", [gate](const std::string& call) {
    if (call == "log 1") gate->pass();
  });
  const auto good = loggers.add("good");
  loggers.set.start({});
  loggers.log(1);
  good->wait_for("log 1");  // else a busy machine makes it late too
  loggers.set.flush_within(20ms);
  EXPECT_EQ(good->count("log 1"), 1u);
  loggers.log(2);
  loggers.set.flush_within(24h);  // would hold the test for ever
  EXPECT_EQ(good->count("log 2"), 1u);
  EXPECT_EQ(stuck->count("log 2"), 0u);
  gate->open();
  loggers.set.flush();
  loggers.log(3);
  loggers.set.flush_within(24h);  // it has caught up
  EXPECT_EQ(stuck->count("log 3"), 1u);
}

TEST(LoggerSet, WhoCatchesUpMissesOnlyWhatWasDropped) {
  auto gate = std::make_shared<Gate>();
  Loggers loggers({.most_waiting = 2});
  const auto slow = loggers.add("slow", [gate](const std::string& call) {
    if (call == "log 1") gate->pass();
  });
  CaptureStderr();
  loggers.log(1);
  gate->wait_for_somebody();
  for (int64_t step = 2; step <= 5; ++step) loggers.log(step);
  gate->open();
  loggers.set.flush();
  loggers.log(6);
  loggers.set.finish(RunOutcome::finished);
  const std::string said = GetCapturedStderr();
  EXPECT_EQ(slow->all(), (Calls{"log 1", "log 2", "log 3", "log 6", "finish 0"}));
  EXPECT_NE(said.find("logger 'slow' was too slow for 2 entries"), said.npos) << said;
}

TEST(LoggerSet, SaysOnceThatACallDoesNotReturn) {
  auto gate = std::make_shared<Gate>();
  Loggers loggers({.patience = 0});
  loggers.add("stuck", [gate](const std::string& call) {
    if (call == "log 1") gate->pass();
  });
  CaptureStderr();
  loggers.log(1);
  gate->wait_for_somebody();
  loggers.log(2);
  loggers.log(3);
  gate->open();
  loggers.set.finish(RunOutcome::finished);
  const std::string said = GetCapturedStderr();
  const std::string wanted = "logger 'stuck' has been in one call for more than 0 s";
  EXPECT_NE(said.find(wanted), said.npos) << said;
  EXPECT_EQ(said.find(wanted), said.rfind(wanted)) << "said once";
  EXPECT_EQ(said.find("lost"), said.npos) << said;
}

TEST(LoggerSet, TellsWhoFollowsStepsTheLatest) {
  auto gate = std::make_shared<Gate>();
  Loggers loggers;
  const auto follower = loggers.add(
      "follower",
      [gate](const std::string& call) {
        if (call == "log 1") gate->pass();
      },
      /*follows=*/true);
  const auto other = loggers.add("other");
  loggers.log(1);
  gate->wait_for_somebody();
  loggers.set.step_done({.step = 1});
  loggers.set.step_done({.step = 2});
  loggers.log(2);
  gate->open();
  loggers.set.finish(RunOutcome::finished);
  EXPECT_EQ(follower->all(), (Calls{"log 1", "log 2", "done 2", "finish 0"}));
  EXPECT_EQ(other->all(), (Calls{"log 1", "log 2", "finish 0"}));
}

TEST(LoggerSet, FinishesEachLoggerOnce) {
  Loggers loggers;
  const auto told = loggers.add("one");
  loggers.set.start({});
  loggers.set.finish(RunOutcome::finished);
  loggers.set.finish(RunOutcome::failed);
  EXPECT_EQ(told->all(), (Calls{"start ", "finish 0"}));
}

TEST(LoggerSet, WhoeverIsDroppedWithTheRunIsFinishedAsFailed) {
  std::shared_ptr<Told> started, never_started;
  {
    Loggers loggers;
    started = loggers.add("one");
    loggers.set.start({});
  }
  {
    Loggers loggers;
    never_started = loggers.add("one");
  }
  EXPECT_EQ(started->all(), (Calls{"start ", "finish 2"}));
  EXPECT_EQ(never_started->all(), Calls{}) << "nothing was started";
}

}  // namespace
}  // namespace titan::core
