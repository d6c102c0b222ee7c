// Memory against recomputation: points computed by hand, and an SVG that XML readers accept.
#include "plugins/activation_checkpoints/recompute/pareto.h"

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::recompute {
namespace {

using titan::testing::holds;

/// Options of one block: 100 FLOP in 40 bytes, 50 FLOP in 60 bytes.
const std::vector<Candidate> kCandidates = {
    {.operation = {.kind = Operation::Kind::matmul, .flops = 100}, .bytes = 40},
    {.operation = {.kind = Operation::Kind::matmul, .flops = 50}, .bytes = 60}};

const ParetoPoint& at_budget(const std::vector<ParetoPoint>& points, double budget) {
  for (const ParetoPoint& point : points)
    if (point.budget == budget) return point;
  ADD_FAILURE() << "no point for " << budget;
  return points.front();
}

TEST(Pareto, HasAPointForEveryBudgetAndTheChosenOne) {
  const std::vector<ParetoPoint> points = pareto_points(kCandidates, 2, /*chosen=*/0.33);
  EXPECT_EQ(points.size(), 22u);
  EXPECT_EQ(at_budget(points, 0).kept_bytes, 0);
  EXPECT_EQ(at_budget(points, 0).recomputed_flops, 300);
  EXPECT_EQ(at_budget(points, 0).recomputed_share, 1);
  EXPECT_EQ(at_budget(points, 0.33).kept_bytes, 40) << "66 of 200 bytes: the first in one block";
  EXPECT_EQ(at_budget(points, 0.4).kept_bytes, 80);
  EXPECT_EQ(at_budget(points, 0.4).recomputed_flops, 100);
  EXPECT_EQ(at_budget(points, 1).kept_bytes, 200);
  EXPECT_EQ(at_budget(points, 1).recomputed_share, 0);
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_GT(points[i].budget, points[i - 1].budget);
    EXPECT_LE(points[i].kept_bytes, static_cast<int64_t>(points[i].budget * 200 + 0.5));
  }
}

TEST(Pareto, IsWrittenAsNumbersAndAsADrawing) {
  const titan::testing::TestFolder folder;
  const std::vector<ParetoPoint> points = pareto_points(kCandidates, 2, 0.5);
  write_pareto(points, 0.5, folder.path(), 3);
  const std::string csv = folder.read("memory_budget_pareto/rank3.csv");
  EXPECT_TRUE(
      holds(csv, "budget,kept_bytes,recomputed_flops,recomputed_share\n0,0,300,1.000000\n"));
  const std::string svg = folder.read("memory_budget_pareto/rank3.svg");
  EXPECT_TRUE(holds(svg, "rank 3"));
  EXPECT_TRUE(holds(svg, "this run: budget 0.5"));
  EXPECT_EQ(svg.find("href"), std::string::npos) << "the file is self-contained";
}

TEST(Pareto, OfBlocksThatCouldKeepNothingIsDrawnToo) {
  const std::vector<ParetoPoint> points = pareto_points({}, 2, 0.5);
  EXPECT_EQ(points.front().recomputed_share, 0);
  EXPECT_EQ(pareto_svg(points, 0.5, "nothing").find("nan"), std::string::npos);
}

}  // namespace
}  // namespace titan::recompute
