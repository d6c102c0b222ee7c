// The limits of watcher 'hangs', compared with values by hand from the rule of
// nvidia-resiliency-ext: limit = factor x longest, an update halves the distance to the new value.
#include "plugins/watchers/hangs/limits.h"

#include <gtest/gtest.h>
#include <titan/error.h>

#include "plugins/watchers/hangs/find_hang.h"

namespace titan::hangs {
namespace {

constexpr size_t kData = section_of(StepPhase::data);
constexpr size_t kForward = section_of(StepPhase::forward);
constexpr size_t kComm = section_of(StepPhase::communication);
constexpr size_t kSave = section_of(StepPhase::checkpoint);
constexpr size_t kValidation = section_of(StepPhase::validation);

Seconds of(size_t section, double seconds) {
  Seconds all{};
  all[section] = seconds;
  return all;
}

Longest later(size_t section, double seconds) {
  Longest longest;
  longest.add(of(section, seconds), /*is_first_step=*/false);
  return longest;
}

TEST(HangLimits, SectionThatWasNeverSeenHasNone) {
  Limits limits({.factor = 5, .floor_seconds = 30});
  EXPECT_FALSE(limits.limit(kData, false));
  limits.update(later(kForward, 2));
  EXPECT_FALSE(limits.limit(kData, false));
  EXPECT_TRUE(limits.limit(kForward, false));
}

TEST(HangLimits, LimitIsTheFactorTimesTheLongestAndAtLeastTheFloor) {
  Longest longest;
  for (const double seconds : {3.0, 8.0, 4.0}) longest.add(of(kData, seconds), false);
  longest.add(of(kForward, 5.9), false);
  Limits limits({.factor = 5, .floor_seconds = 30});
  limits.update(longest);
  EXPECT_DOUBLE_EQ(limits.limit(kData, false)->seconds, 40);  // 5 x 8
  EXPECT_DOUBLE_EQ(limits.limit(kData, false)->longest, 8);
  EXPECT_DOUBLE_EQ(limits.limit(kForward, false)->seconds, 30);  // 5 x 5.9 = 29.5
}

TEST(HangLimits, UpdateTakesHalfOfTheOldAndHalfOfTheNew) {
  Limits limits({.factor = 5, .floor_seconds = 1});
  limits.update(later(kData, 8));   // 40
  limits.update(later(kData, 16));  // (40 + 80) / 2 = 60
  EXPECT_DOUBLE_EQ(limits.limit(kData, false)->seconds, 60);
  limits.update(later(kData, 16));  // (60 + 80) / 2 = 70
  EXPECT_DOUBLE_EQ(limits.limit(kData, false)->seconds, 70);
  limits.update(later(kData, 2));  // (70 + 10) / 2 = 40
  EXPECT_DOUBLE_EQ(limits.limit(kData, false)->seconds, 40);
}

TEST(HangLimits, FirstStepsHaveTheLargerLimit) {
  Longest longest;
  longest.add(of(kForward, 20), /*is_first_step=*/true);
  longest.add(of(kForward, 2), false);
  longest.add(of(kValidation, 7), true);  // in step 1 only
  Limits limits({.factor = 3, .floor_seconds = 1});
  limits.update(longest);
  EXPECT_DOUBLE_EQ(limits.limit(kForward, true)->seconds, 60);
  EXPECT_DOUBLE_EQ(limits.limit(kForward, false)->seconds, 6);
  EXPECT_DOUBLE_EQ(limits.limit(kValidation, false)->seconds, 21);
}

TEST(HangLimits, StateKeepsEveryBit) {
  Longest longest;
  longest.add(of(kForward, 1.0 / 3), true);
  longest.add(of(kStep, 0.1), false);
  Limits limits({});
  limits.update(longest);
  Limits restored({});
  restored.restore(parse_json(to_json(limits.state())));
  EXPECT_EQ(restored.state(), limits.state());
  EXPECT_EQ(limits.state(), Value::map({{"first", Value::map({{"forward", 1.0 / 3}})},
                                        {"later", Value::map({{"step", 0.1}})}}));
}

TEST(HangLimits, StateThatDoesNotFitIsRefusedWithItsPlace) {
  Limits limits({});
  const auto state = [](double seconds) {
    return Value::map({{"first", Value::map()}, {"later", Value::map({{"data", seconds}})}});
  };
  EXPECT_NO_THROW(limits.restore(state(1)));
  try {
    limits.restore(state(-1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(error.message().find("section 'data'"), std::string::npos) << error.message();
  }
}

/// Longest times: data 1, forward 4, step 10, communication 3, validation 20, checkpoint 6.
Limits learned() {
  Longest longest;
  longest.later[kData] = 1;
  longest.later[kForward] = 4;
  longest.later[kStep] = 10;
  longest.later[kComm] = 3;
  longest.later[kValidation] = 20;
  longest.later[kSave] = 6;
  Limits limits({.factor = 2, .floor_seconds = 1});
  limits.update(longest);
  return limits;
}

TEST(FindHang, RankThatDoesNotWaitHasTheLimitOfItsSection) {
  const Limits limits = learned();
  Situation at{.phase = StepPhase::forward, .now = of(kForward, 7.9)};
  EXPECT_FALSE(find_hang(at, limits));
  at.now[kForward] = 8.1;
  const auto found = find_hang(at, limits);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->waits);
  EXPECT_EQ(found->section, kForward);
  EXPECT_DOUBLE_EQ(found->limit.seconds, 8);
  at.phase = StepPhase::optimizer;  // the forward has ended
  EXPECT_FALSE(find_hang(at, limits));
}

TEST(FindHang, SectionWithoutALimitStillHasThatOfTheStep) {
  const Limits limits = learned();
  Situation at{.phase = StepPhase::optimizer, .now = of(kStep, 20.1)};
  at.now[section_of(StepPhase::optimizer)] = 19;
  const auto found = find_hang(at, limits);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->section, kStep);
}

TEST(FindHang, SectionThatFillsTheStepIsNamedRatherThanTheStep) {
  Longest longest;
  longest.later[kForward] = longest.later[kStep] = 0.1;
  Limits limits({.factor = 2, .floor_seconds = 10});
  limits.update(longest);
  Situation at{.phase = StepPhase::forward, .now = of(kForward, 9.9)};
  at.now[kStep] = 10.1;
  EXPECT_FALSE(find_hang(at, limits));
  at.now[kForward] = 10.1;
  at.now[kStep] = 10.3;
  ASSERT_TRUE(find_hang(at, limits));
  EXPECT_EQ(find_hang(at, limits)->section, kForward);
  at.now[kForward] = 4;  // most of the step was elsewhere
  ASSERT_TRUE(find_hang(at, limits));
  EXPECT_EQ(find_hang(at, limits)->section, kStep);
}

TEST(FindHang, RankThatWaitsGivesOthersTheTimeOfAWholeStep) {
  const Limits limits = learned();
  Situation at{
      .phase = StepPhase::communication, .now = of(kComm, 24), .waits = 23.9, .patience = 4};
  EXPECT_FALSE(find_hang(at, limits)) << "its own communication has a limit of 6 s";
  at.waits = 24.1;  // 2 x 10 + 4
  const auto found = find_hang(at, limits);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->waits);
  EXPECT_DOUBLE_EQ(found->limit.seconds, 24);
  ASSERT_EQ(found->parts.size(), 1u);
  EXPECT_EQ(found->parts[0].first, kStep);
}

TEST(FindHang, RankThatWaitsGivesOthersTheTimeOfTheirValidationAndSave) {
  const Limits limits = learned();
  Situation at{.phase = StepPhase::communication, .waits = 75.9, .patience = 4};
  at.before[kValidation] = 1;
  at.now[kSave] = 0.5;
  EXPECT_FALSE(find_hang(at, limits));
  at.waits = 76.1;  // 2 x (10 + 20 + 6) + 4
  ASSERT_TRUE(find_hang(at, limits));
  EXPECT_EQ(find_hang(at, limits)->parts.size(), 3u);
  at.now[kSave] = 1e-5;  // a step without a save
  EXPECT_DOUBLE_EQ(find_hang(at, limits)->limit.seconds, 64);
}

TEST(FindHang, RankThatWaitsForAFirstSaveWaitsForEver) {
  Longest longest;
  longest.later[kStep] = 10;
  Limits limits({.factor = 2, .floor_seconds = 1});
  limits.update(longest);
  Situation at{.phase = StepPhase::communication, .waits = 1e6};
  EXPECT_TRUE(find_hang(at, limits));
  at.before[kSave] = 0.5;
  EXPECT_FALSE(find_hang(at, limits));
}

TEST(FindHang, SlowNetworkRaisesTheLimitOfWaits) {
  Longest longest;
  longest.later[kStep] = 1;
  longest.later[kComm] = 50;
  Limits limits({.factor = 2, .floor_seconds = 1});
  limits.update(longest);
  Situation at{.phase = StepPhase::communication, .waits = 99};
  EXPECT_FALSE(find_hang(at, limits));
  at.waits = 101;
  EXPECT_EQ(find_hang(at, limits)->parts[0].first, kComm);
}

}  // namespace
}  // namespace titan::hangs
