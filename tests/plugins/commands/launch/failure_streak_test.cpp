#include "plugins/commands/launch/failure_streak.h"

#include <gtest/gtest.h>

namespace titan::launching {
namespace {

RankFailure error(const std::string& text, int rank = 1) {
  return {.rank = rank, .pid = 7, .how = "ended with exit code 1", .error = text};
}

RankFailure kill(int rank = 1) {
  return {.rank = rank, .pid = 7, .how = "was ended by signal 9 (SIGKILL)", .error = ""};
}

FailedAt at(int64_t step, const std::string& newest_save = "", bool is_exact = true) {
  return {step, is_exact, newest_save, 0};
}

TEST(FailureStreak, CountsOneCauseAtOneStep) {
  FailureStreak streak;
  EXPECT_EQ(streak.add(error("error: no data in part 3 of 0x7ff1\n  in training step 6"), at(6)),
            1);
  EXPECT_EQ(streak.add(error("error: no data in part 4 of 0x7aa2"), at(6)), 2) << "numbers differ";
  EXPECT_EQ(streak.add(error("error: no data in part 5 of 0x7bb3", 0), at(6)), 3) << "other rank";
  EXPECT_EQ(streak.add(error("error: no space in part 5 of 0x7bb3"), at(6)), 1) << "other words";
  EXPECT_EQ(streak.add(kill(), at(6)), 1);
}

TEST(FailureStreak, BeginsAnewAtAnotherStepThatTheErrorNames) {
  FailureStreak streak;
  EXPECT_EQ(streak.add(error("error: no data"), at(6)), 1);
  EXPECT_EQ(streak.add(error("error: no data"), at(7)), 1);
  EXPECT_EQ(streak.add(error("error: no data"), at(7)), 2);
}

TEST(FailureStreak, DoesNotCompareStepsThatAreAboutRight) {
  FailureStreak streak;
  EXPECT_EQ(streak.add(kill(), at(6, "", false)), 1);
  EXPECT_EQ(streak.add(kill(), at(9, "", false)), 2);
  EXPECT_EQ(streak.add(kill(), {}), 3);
}

TEST(FailureStreak, BeginsAnewAfterACheckpoint) {
  FailureStreak streak;
  EXPECT_EQ(streak.add(kill(), at(6, "job/0/5")), 1);
  EXPECT_FALSE(streak.has_progressed()) << "the first failure has nothing to compare with";
  EXPECT_EQ(streak.add(kill(), at(6, "job/0/5")), 2);
  EXPECT_FALSE(streak.has_progressed());
  EXPECT_EQ(streak.add(kill(), at(6, "job/0/10")), 1);
  EXPECT_TRUE(streak.has_progressed());
}

TEST(FailureStreak, BeginsAnewAfterANewerLocalCheckpoint) {
  FailureStreak streak;
  const auto with_local = [](int64_t step) { return FailedAt{6, false, "job/0/5", step}; };
  EXPECT_EQ(streak.add(kill(), with_local(8)), 1);
  EXPECT_EQ(streak.add(kill(), with_local(10)), 1);
  EXPECT_EQ(streak.add(kill(), with_local(8)), 2) << "an incomplete step was removed";
  EXPECT_EQ(streak.add(kill(), with_local(10)), 3);
}

TEST(FailureStreak, CountsHowOftenOneRankFailedFirst) {
  FailureStreak streak;
  streak.add(kill(2), at(6));
  streak.add(error("error: no data", 2), at(7));
  EXPECT_EQ(streak.num_of_rank(), 2) << "whatever the cause";
  streak.add(kill(0), at(6));
  EXPECT_EQ(streak.num_of_rank(), 1);
  streak.add(kill(0), at(6, "job/0/10"));
  EXPECT_EQ(streak.num_of_rank(), 1) << "a checkpoint became complete";
  streak.reset();
  EXPECT_EQ(streak.num_of_rank(), 0);
  EXPECT_EQ(streak.add(kill(0), at(6, "job/0/10")), 1);
}

TEST(FailureStreak, NamesRankStepAndMessage) {
  EXPECT_EQ(to_text(error("error: no data\n  in training step 6"), at(6)),
            "rank 1 at step 6 ended with exit code 1: error: no data");
  EXPECT_EQ(to_text(kill(), at(6, "", false)),
            "rank 1 at about step 6 was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(to_text(kill(), {}), "rank 1 was ended by signal 9 (SIGKILL)");
}

}  // namespace
}  // namespace titan::launching
