// Goodput of made-up histories, in which the use of all time is known.

#include <string>

#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/runs/goodput.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

/// Lines of history.jsonl with a simulated clock.
class MadeUpHistory {
 public:
  double now = 1000;

  void start(int64_t resumed) {
    line("start", R"("resumed_step":)" + std::to_string(resumed) + R"(,"config":{})");
  }
  void first_step(int64_t step) { line("first_step", R"("step":)" + std::to_string(step)); }
  void steps(int64_t from, int64_t to, double forward, double checkpoint = 0,
             double validation = 0, double replicas = 0) {
    now += forward + checkpoint + validation + replicas;
    line("steps", R"("from":)" + std::to_string(from) + R"(,"to":)" + std::to_string(to) +
                      R"(,"seconds":{"forward":)" + std::to_string(forward) + R"(,"checkpoint":)" +
                      std::to_string(checkpoint) + R"(,"validation":)" +
                      std::to_string(validation) + R"(,"replicas":)" + std::to_string(replicas) +
                      "}");
  }
  void checkpoint(int64_t step, double held) {
    line("checkpoint", R"("step":)" + std::to_string(step) + R"(,"held":)" + std::to_string(held));
  }
  void end(int64_t step, const std::string& outcome) {
    line("end",
         R"("step":)" + std::to_string(step) + R"(,"outcome":")" + outcome + R"(","error":"")");
  }
  void add(const std::string& text) { text_ += text; }
  GoodputMeter measured() const { return measure_goodput(parse_history(text_).events); }
  const std::string& text() const { return text_; }

 private:
  void line(const std::string& event, const std::string& members) {
    text_ += R"({"event":")" + event + R"(","time":)" + std::to_string(now) + "," + members + "}\n";
  }
  std::string text_;
};

double lost(const GoodputMeter& meter, LostTime cause) {
  return meter.seconds().of(cause);
}

TEST(Goodput, OfARunWithoutLossIsItsStepsBesideStartUp) {
  MadeUpHistory run;
  run.start(0);
  run.now += 5;  // setup, then the first step of 2 s
  run.now += 2;
  run.first_step(1);
  run.now -= 2;
  run.steps(1, 1, 2);
  run.steps(2, 10, 9);
  run.now += 1;
  run.end(10, "finished");
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(meter.seconds().productive, 11);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::startup), 5);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::other), 1);
  EXPECT_DOUBLE_EQ(meter.seconds().total(), 17);
  EXPECT_DOUBLE_EQ(meter.seconds().share(), 11. / 17);
}

TEST(Goodput, WaitingForReplicaGroupsIsACauseOfItsOwn) {
  MadeUpHistory run;
  run.start(0);
  run.now += 5;
  run.steps(1, 10, 10, 2, 0, 40);  // of which 40 s before the first step, for a second group
  run.steps(11, 20, 10, 0, 0, 3);
  run.end(20, "finished");
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(meter.seconds().productive, 20);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::replicas), 43);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::checkpoint), 2);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::startup), 5);
  EXPECT_DOUBLE_EQ(meter.seconds().total(), 70);
}

TEST(Goodput, CountsCheckpointsAndValidationOnceInsideAndBehindStepsEvents) {
  MadeUpHistory run;
  run.start(0);
  run.checkpoint(5, 1);
  run.steps(1, 10, 10, /*checkpoint=*/1, /*validation=*/3);
  run.now += 2;
  run.checkpoint(10, 2);
  run.end(10, "finished");
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::checkpoint), 3);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::validation), 3);
  EXPECT_DOUBLE_EQ(meter.seconds().productive, 10);
  EXPECT_DOUBLE_EQ(meter.seconds().total(), 16);
}

TEST(Goodput, StepsThatAreDoneAgainAreLostWithTheirShareOfAnInterval) {
  MadeUpHistory run;
  run.start(0);
  run.steps(1, 10, 10);
  run.steps(11, 20, 20);
  run.now += 100;  // killed, then started again
  run.start(15);
  run.now += 3;
  run.steps(16, 20, 10);
  run.end(20, "finished");
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::repeated), 10);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::restart), 103);
  EXPECT_DOUBLE_EQ(meter.seconds().productive, 30);
  ASSERT_EQ(meter.sessions().size(), 2u);
  EXPECT_EQ(meter.sessions()[0].outcome, RunSession::End::none);
  EXPECT_DOUBLE_EQ(meter.sessions()[0].seconds.of(LostTime::repeated), 10);
  EXPECT_DOUBLE_EQ(meter.sessions()[1].seconds.of(LostTime::restart), 103);
  EXPECT_EQ(meter.sessions()[1].outcome, RunSession::End::finished);
}

TEST(Goodput, ARestartMayThrowAwayStepsOfSeveralSessions) {
  MadeUpHistory run;
  run.start(0);
  run.steps(1, 10, 10);
  run.start(8);
  run.steps(9, 12, 8);
  run.start(4);
  run.steps(5, 12, 8);
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(meter.seconds().productive, 4 + 8);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::repeated), 6 + 8);
  EXPECT_DOUBLE_EQ(meter.seconds().total(), 26);
}

TEST(Goodput, AnErrorAfterALongSilenceWasAHang) {
  MadeUpHistory run;
  run.start(0);
  run.steps(1, 10, 10);
  run.now += 600;
  run.end(10, "failed");
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::hang), 600);
  EXPECT_EQ(meter.sessions().back().outcome, RunSession::End::failed);
}

TEST(Goodput, AnErrorBeforeTheFirstStepIsStartUp) {
  MadeUpHistory run;
  run.start(0);
  run.now += 7;
  run.end(0, "failed");
  run.now += 1;
  run.start(0);
  run.now += 2;
  run.first_step(1);
  const GoodputMeter meter = run.measured();
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::startup), 7);
  EXPECT_DOUBLE_EQ(lost(meter, LostTime::restart), 3);
  EXPECT_DOUBLE_EQ(meter.seconds().total(), 10);
}

TEST(Goodput, StepsThatNoLineWasLoggedForCount) {
  MadeUpHistory run;
  run.start(0);
  run.steps(1, 10, 10);
  run.now += 5 + 1;
  run.checkpoint(15, 1);  // then killed
  MadeUpHistory stopped = run;
  run.now += 50;
  run.start(15);
  run.steps(16, 20, 5);
  EXPECT_DOUBLE_EQ(run.measured().seconds().productive, 20);
  EXPECT_DOUBLE_EQ(lost(run.measured(), LostTime::restart), 50);

  stopped.now += 4;  // two more steps at the speed of the last, and two seconds of shutdown
  stopped.end(17, "stopped");
  EXPECT_DOUBLE_EQ(stopped.measured().seconds().productive, 17);
  EXPECT_DOUBLE_EQ(lost(stopped.measured(), LostTime::other), 2);
}

TEST(Goodput, AlwaysAddsUpToTheTimeThatPassed) {
  MadeUpHistory run;
  run.start(0);
  run.now += 11;
  run.steps(1, 7, 8, 1, 2);
  run.now += 3;  // not recorded anywhere
  run.steps(8, 9, 2);
  run.now += 10;
  run.end(9, "failed");
  run.now += 20;
  run.start(3);
  run.now += 4;
  run.first_step(4);
  run.steps(4, 9, 6, 0.5);
  const GoodputSeconds seconds = run.measured().seconds();
  EXPECT_DOUBLE_EQ(seconds.total(), run.now - 1000);
}

TEST(Goodput, OfNothingIsNothing) {
  EXPECT_EQ(measure_goodput({}).seconds().share(), 0);
  MadeUpHistory run;
  run.end(3, "failed");  // its start event is lost
  EXPECT_TRUE(run.measured().sessions().empty());
}

TEST(Goodput, AClockThatIsSetBackCountsAsNoTime) {
  MadeUpHistory run;
  run.start(0);
  run.steps(1, 10, 10);
  run.now -= 5000;
  run.start(10);
  run.steps(11, 20, 10);
  const GoodputSeconds seconds = run.measured().seconds();
  EXPECT_DOUBLE_EQ(seconds.productive, 20);
  EXPECT_DOUBLE_EQ(seconds.total(), 20);
}

TEST(RunEvent, WhatIsTornOrOfAnotherKindIsLeftOut) {
  MadeUpHistory run;
  run.add("{\"event\":\"start\",\"ti\n");
  run.add("{\"event\":\"eclipse\",\"time\":3}\n\n");
  run.add("{\"event\":\"checkpoint\",\"time\":3,\"step\":4,\"held\":-1}\n");
  run.start(0);
  run.add("{\"event\":\"end\"");  // a line that is still being written
  const RunHistory history = parse_history(run.text());
  EXPECT_EQ(history.events.size(), 1u);
  EXPECT_EQ(history.num_unreadable, 2);
}

TEST(RunEvent, SaysWhatIsWrongWithALine) {
  const auto message = [](const char* line) {
    return error_of([&] { parse_event(line); }).message();
  };
  EXPECT_TRUE(holds(message(R"({"event":"end","time":1,"step":"x","outcome":"stopped"})"),
                    "member 'step' is not an integer, but string"));
  EXPECT_TRUE(holds(message(R"({"event":"steps","time":1,"from":5,"to":4,"seconds":{}})"),
                    "steps 5 to 4 are not a range"));
  EXPECT_TRUE(holds(message(R"({"event":"end","time":1,"step":2,"outcome":"won"})"), "'won'"));
  EXPECT_TRUE(holds(message(R"({"time":1})"), "member 'event' is missing"));
}

TEST(RunEvent, OfARunWithoutHistoryThereAreNone) {
  const testing::TestFolder folder;
  EXPECT_TRUE(read_history(folder.path()).events.empty());
  folder.write("history.jsonl", R"({"event":"first_step","time":1,"step":1})"
                                "\n");
  EXPECT_EQ(read_history(folder.path()).events.size(), 1u);
}

}  // namespace
}  // namespace titan
