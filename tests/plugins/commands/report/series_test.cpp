#include <titan/runs/series.h>

#include <cmath>

#include <gtest/gtest.h>

#include "plugins/commands/report/page_data.h"
#include "tests/plugins/test_folder.h"

namespace titan::commands {
namespace {

Series rising(int count) {
  Series series;
  for (int i = 0; i < count; ++i) {
    series.steps.push_back(10 * (i + 1));
    series.values.push_back(i);
  }
  return series;
}

TEST(RunSeries, TheLastLineOfAStepCountsAndStepsRise) {
  const Metrics metrics = parse_metrics(
      "{\"step\":1,\"lr\":1}\n{\"step\":3,\"lr\":3}\n{\"step\":2,\"lr\":5,\"loss\":\"nan\"}\n"
      "{\"step\":3,\"lr\":7,\"loss\":\"-inf\",\"note\":\"text\"}\nno "
      "JSON\n{\"lr\":1}\n{\"step\":9");
  EXPECT_EQ(metrics.series.at("lr").steps, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(metrics.series.at("lr").values, (std::vector<double>{1, 5, 7}));
  EXPECT_TRUE(std::isnan(metrics.series.at("loss").values[0]));
  EXPECT_EQ(metrics.series.at("loss").values[1], -HUGE_VAL);
  EXPECT_EQ(metrics.series.count("note"), 0u);
  EXPECT_EQ(metrics.num_unreadable, 2);
}

TEST(RunSeries, WhereEveryRankHasAFileThatOfRankZeroIsRead) {
  const testing::TestFolder folder;
  EXPECT_TRUE(read_metrics(folder.path()).series.empty());
  folder.write("metrics_rank_0.jsonl", "{\"step\":1,\"lr\":2}\n");
  EXPECT_EQ(read_metrics(folder.path()).series.at("lr").values.front(), 2);
  folder.write("metrics.jsonl", "{\"step\":1,\"lr\":3}\n");
  EXPECT_EQ(read_metrics(folder.path()).series.at("lr").values.front(), 3);
}

TEST(RunSeries, BucketsCoverEveryPointOnce) {
  const std::vector<Bucket> buckets = to_buckets(rising(10), 3);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].first_step, 10);
  EXPECT_EQ(buckets[0].last_step, 30);
  EXPECT_EQ(buckets[1].first_step, 40);
  EXPECT_EQ(buckets[2].last_step, 100);
  EXPECT_EQ(buckets[2].lowest, 6);
  EXPECT_EQ(buckets[2].highest, 9);
  EXPECT_DOUBLE_EQ(buckets[2].mean, 7.5);
  EXPECT_EQ(to_buckets(rising(2), 5).size(), 2u);
}

TEST(RunSeries, ABucketKeepsItsExtremesWhereverTheyAre) {
  Series series = rising(6);
  series.values = {1, 9, 2, 5, -7, 4};
  const std::vector<Bucket> buckets = to_buckets(series, 2);
  EXPECT_EQ(buckets[0].lowest, 1);
  EXPECT_EQ(buckets[0].highest, 9);
  EXPECT_EQ(buckets[1].lowest, -7);
  EXPECT_EQ(buckets[1].highest, 5);
}

TEST(RunSeries, BucketsOfWhatIsNotFiniteHaveNoValue) {
  Series series = rising(4);
  series.values = {std::nan(""), 5, HUGE_VAL, std::nan("")};
  const std::vector<Bucket> buckets = to_buckets(series, 2);
  EXPECT_EQ(buckets[0].lowest, 5);
  EXPECT_EQ(buckets[0].mean, 5);
  EXPECT_TRUE(std::isnan(buckets[1].mean));
}

TEST(CurveData, StaysWithinItsLimitAndTellsWhatIsNotFinite) {
  Metrics metrics;
  for (int tag = 0; tag < 20; ++tag) metrics.series["tag" + std::to_string(tag)] = rising(5000);
  metrics.series["tag3"].values[7] = std::nan("");
  const Value data = curve_data({&metrics}, 6000);
  size_t numbers = 0;
  for (const auto& [tag, curve] : data.as_list()[0].at("curves").as_map())
    numbers += 3 * curve.at("v").as_list().size();
  EXPECT_LE(numbers, 6000u);
  EXPECT_GT(numbers, 4000u);
  const Value& odd = data.as_list()[0].at("curves").at("tag3");
  EXPECT_EQ(odd.at("num_odd").as_integer(), 1);
  EXPECT_EQ(to_json(odd.at("odd")), "[[80,\"nan\"]]");
  EXPECT_EQ(data.as_list()[0].at("steps").as_list().size(), 2u);  // the first and last bucket
}

TEST(CurveData, ShortCurvesAreWhole) {
  Metrics metrics;
  metrics.series["lr"] = rising(5);
  const Value data = curve_data({&metrics}, 1000);
  EXPECT_EQ(to_json(data),
            R"([{"steps":[[10,20,30,40,50]],"curves":{"lr":{"s":0,"v":[0,1,2,3,4]}}}])");
}

}  // namespace
}  // namespace titan::commands
