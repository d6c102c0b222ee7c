// Which rank the others wait for, with made-up times.
#include "core/train/logging/slowest_rank.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

StepClock::Seconds times(double forward, double backward, double waited) {
  StepClock::Seconds seconds{};
  seconds[static_cast<size_t>(StepPhase::forward)] = forward;
  seconds[static_cast<size_t>(StepPhase::backward)] = backward;
  seconds[static_cast<size_t>(StepPhase::communication)] = waited;
  return seconds;
}

/// The warnings of rank 0 when each of four ranks reports its times `times` times.
std::string warnings(const std::vector<StepClock::Seconds>& ranks, int times) {
  ::testing::internal::CaptureStderr();
  testing::run_ranks({.dp_shard = 4}, [&](const dist::Mesh& mesh) {
    SlowestRank slowest;
    for (int i = 0; i < times; ++i)
      slowest.look(ranks[static_cast<size_t>(mesh.rank())], mesh.group("world"), c10::kCPU);
  });
  std::istringstream lines(::testing::internal::GetCapturedStderr());
  std::string kept;  // devices report how their ranks communicate
  for (std::string line; std::getline(lines, line);)
    if (line.find(" info ") == line.npos) kept += line + "\n";
  return kept;
}

size_t count(const std::string& text, const std::string& part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

const std::vector<StepClock::Seconds> kOneIsSlow = {times(3, 6, 3), times(3.2, 5.6, 3.2),
                                                    times(4, 8, 0), times(3, 6.5, 2.5)};

TEST(SlowestRank, IsTheOneWithTheMostWorkOfItsOwn) {
  testing::run_ranks({.dp_shard = 4}, [&](const dist::Mesh& mesh) {
    SlowestRank slowest;
    const std::vector<Scalar> found =
        slowest.look(kOneIsSlow[static_cast<size_t>(mesh.rank())], mesh.group("world"), c10::kCPU);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].tag, "time_metrics/slowest_rank");
    EXPECT_EQ(found[0].value, 2);
    EXPECT_DOUBLE_EQ(found[1].value, 100 * (12 - 9) / 12.0);  // over the lower median, rank 0
  });
}

TEST(SlowestRank, IsNamedOnceWhenItLasts) {
  EXPECT_EQ(warnings(kOneIsSlow, 2), "") << "24 seconds";
  const std::string said = warnings(kOneIsSlow, 9);
  EXPECT_EQ(count(said, "warning"), 1u) << said;
  EXPECT_NE(said.find("rank 2 has been the slowest for 3 logged steps: its work takes 25 % of the "
                      "time more than that of the median rank, most of it in backward"),
            std::string::npos)
      << said;
}

TEST(SlowestRank, EvenRanksAreNotWarnedOf) {
  EXPECT_EQ(warnings({times(3, 6, 3), times(3, 6.1, 2.9), times(3, 7, 2), times(3, 6, 3)}, 9), "");
}

TEST(SlowestRank, ValidationIsBesideTheWork) {
  std::vector<StepClock::Seconds> ranks(4, times(3, 6, 3));
  ranks[1][static_cast<size_t>(StepPhase::validation)] = 50;
  EXPECT_EQ(warnings(ranks, 9), "");
}

}  // namespace
}  // namespace titan::core
