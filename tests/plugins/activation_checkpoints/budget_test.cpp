// Which operations a byte budget keeps, by hand; the kept bytes never exceed the budget.
#include "plugins/activation_checkpoints/recompute/kept_results.h"

#include <random>

#include <gtest/gtest.h>

namespace titan::recompute {
namespace {

using Kind = Operation::Kind;
using Places = std::vector<std::set<size_t>>;

Candidate candidate(double flops, int64_t bytes, Kind kind = Kind::matmul) {
  return {.operation = {.kind = kind, .flops = flops}, .bytes = bytes};
}

int64_t bytes_of(const Places& places, const std::vector<Candidate>& candidates) {
  int64_t sum = 0;
  for (const std::set<size_t>& block : places)
    for (const size_t place : block) sum += candidates[place].bytes;
  return sum;
}

TEST(MemoryBudget, KeepsFirstWhatCostsMostPerByte) {
  const std::vector<Candidate> candidates = {candidate(100, 10), candidate(100, 5),
                                             candidate(90, 30)};
  EXPECT_EQ(choose_within(0, candidates, 2), (Places{{}, {}}));
  EXPECT_EQ(choose_within(9, candidates, 2), (Places{{1}, {}}));
  EXPECT_EQ(choose_within(10, candidates, 2), (Places{{1}, {1}}));
  EXPECT_EQ(choose_within(20, candidates, 2), (Places{{0, 1}, {1}}));
  EXPECT_EQ(choose_within(60, candidates, 2), (Places{{0, 1, 2}, {0, 1}}));
  EXPECT_EQ(choose_within(90, candidates, 2), (Places{{0, 1, 2}, {0, 1, 2}}));
}

TEST(MemoryBudget, KeepsWhatCameFromOtherRanksBeforeAnythingElse) {
  const std::vector<Candidate> candidates = {candidate(1e9, 8),
                                             candidate(0, 8, Kind::reduce_scatter)};
  EXPECT_EQ(choose_within(16, candidates, 2), (Places{{1}, {1}}));
}

TEST(MemoryBudget, NeverKeepsMoreThanAllowed) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<Candidate> candidates(random() % 8);
    int64_t all = 0;
    const size_t num_blocks = 1 + random() % 6;
    for (Candidate& made : candidates) {
      made = candidate(random() % 1000, 1 + random() % 50);
      all += made.bytes * static_cast<int64_t>(num_blocks);
    }
    const int64_t budget = static_cast<int64_t>(random() % 1200);
    const Places places = choose_within(budget, candidates, num_blocks);
    EXPECT_LE(bytes_of(places, candidates), budget);
    if (budget >= all) {
      EXPECT_EQ(bytes_of(places, candidates), all);
    }
  }
}

}  // namespace
}  // namespace titan::recompute
