#include "plugins/commands/bench/pairs.h"

#include <gtest/gtest.h>

namespace titan::commands {
namespace {

BenchFigures with_speed(double tokens_per_second) {
  BenchFigures figures;
  figures.tokens_per_second = tokens_per_second;
  figures.tokens_per_step = 100;
  return figures;
}

const BenchRatio* find(const std::vector<BenchRatio>& ratios, const std::string& name) {
  for (const BenchRatio& ratio : ratios)
    if (ratio.name == name) return &ratio;
  return nullptr;
}

TEST(Pairs, BeginWithEachSideInTurn) {
  std::string order;
  const BenchPairs pairs = run_pairs(
      4,
      [&](bool is_a) {
        order += is_a ? 'A' : 'B';
        return with_speed(is_a ? 2 : 1);
      },
      [&](const BenchPairs&) { order += ' '; });
  EXPECT_EQ(order, "AB BA AB BA ");
  ASSERT_EQ(pairs.a.size(), 4u);
  ASSERT_EQ(pairs.b.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pairs.a[i].tokens_per_second, 2);
}

/// Seven pairs; one has the ratio `odd`, the others 2.
const char* verdict_with(double odd) {
  BenchPairs pairs;
  for (int i = 0; i < 7; ++i) {
    pairs.a.push_back(with_speed(i == 3 ? odd : 2));
    pairs.b.push_back(with_speed(1));
  }
  return ratios_of(pairs).front().verdict();
}

TEST(Ratios, AreInconclusiveWhereTheIntervalHoldsOne) {
  EXPECT_STREQ(verdict_with(1.5), "above 1");
  EXPECT_STREQ(verdict_with(0.9), "inconclusive");
  BenchRatio below{"x", {}, median_interval({0.5, 0.6, 0.7, 0.5, 0.6, 0.7, 0.9})};
  EXPECT_STREQ(below.verdict(), "below 1");
  BenchRatio few{"x", {}, median_interval({2, 2, 2})};
  EXPECT_STREQ(few.verdict(), "inconclusive");
}

TEST(Ratios, ArePairByPairAndOfWhatBothSidesTell) {
  BenchPairs pairs;
  for (const double speed : {10.0, 40.0}) {
    pairs.a.push_back(with_speed(speed));
    pairs.b.push_back(with_speed(speed / 2));
    pairs.b.back().tokens_per_step = 50;
    for (BenchFigures* side : {&pairs.a.back(), &pairs.b.back()})
      side->per_step = CpuCounts{3, std::nullopt, std::nullopt};
    pairs.a.back().gemm_flops = 1;
  }
  const std::vector<BenchRatio> ratios = ratios_of(pairs);
  EXPECT_EQ(find(ratios, "tokens_per_second")->pairs, (std::vector<double>{2, 2}));
  // 3 s for 100 tokens over 3 s for 50
  EXPECT_EQ(find(ratios, "cpu_seconds")->pairs, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(find(ratios, "instructions"), nullptr);
  EXPECT_EQ(find(ratios, "gemm_flops"), nullptr);
}

}  // namespace
}  // namespace titan::commands
