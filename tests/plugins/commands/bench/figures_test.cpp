#include "plugins/commands/bench/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

#include "tests/plugins/test_folder.h"

namespace titan::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FiguresOfTitan : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "timeline");
    std::filesystem::create_directories(folder_ / "status");
    write(
        "history.jsonl",
        R"({"event":"start","time":1000.0,"world_size":2,"steps":5,"resumed_step":0,"titan":"t","device":"d","parameters":10,"tokens_per_step":600,"flops_per_token":{"full_attention":5e9,"causal_half":4e9},"compute_dtype":"bfloat16","peak_flops":1e13,"config":{"device":{"name":"cpu"}}})"
        "\n"
        R"({"event":"first_step","time":1001.5,"step":1})"
        "\n");
    std::string lines;
    for (int step = 1; step <= 5; ++step) {
      Value line = Value::map({{"step", step}});
      line["time_metrics/end_to_end(s)"] = static_cast<double>(step);
      line["memory/max_active(GiB)"] = step == 2 ? 3 : 1;
      lines += to_json(line) + "\n";
    }
    write("metrics.jsonl", lines);
  }
  void write(const std::string& name, const std::string& text) {
    write_text_atomically(folder_ / name, text);
  }
  /// Steps 1 and 4, in which the rank sent `bytes` by two operations.
  void write_timeline(int rank, int bytes) {
    std::string lines = "{\"plan\":null}\n";
    for (const int step : {1, 4})
      lines += R"({"step":)" + std::to_string(step) + R"(,"begin":1000.5,"spans":[],"traffic":[)" +
               R"({"group":"tp","operation":"all_reduce","calls":3,"bytes":)" +
               std::to_string(step == 4 ? bytes : 1) +
               R"(},{"group":"dp","operation":"send","calls":1,"bytes":4}]})" + "\n";
    write("timeline/rank_" + std::to_string(rank) + ".jsonl", lines);
  }
  BenchFigures figures(const MeasuredRun& run = {}) const {
    return figures_of_titan(folder_, run, kSteps);
  }

  static constexpr BenchSteps kSteps{.warmup = 2, .measured = 3};
  titan::testing::TestFolder own_;
  const std::filesystem::path folder_ = own_.path();
};

TEST_F(FiguresOfTitan, AreOfTheStepsAfterTheWarmUp) {
  const BenchFigures found = figures();
  EXPECT_THAT(found.step_seconds, ElementsAre(3, 4, 5));
  EXPECT_EQ(found.tokens_per_second, 150);
  EXPECT_EQ(found.medians.at("time_metrics/end_to_end(s)"), 4);
}

TEST_F(FiguresOfTitan, LookForThePeakOfMemoryInAllSteps) {
  EXPECT_EQ(figures().peak_bytes, 3.0 * (1 << 30));
  write("status/rank_1.json",
        R"({"rank":1,"world_size":2,"time":1001.0,"state":"ended","memory_bytes":9000000000})");
  EXPECT_EQ(figures().peak_bytes, 9e9);
}

TEST_F(FiguresOfTitan, GiveBothConventionsOfMfuOverThePeakOfAllRanks) {
  const BenchFigures found = figures();
  EXPECT_DOUBLE_EQ(*found.share_of(found.flops_full, found.peak_flops), 150 * 5e9 / 2e13);
  EXPECT_DOUBLE_EQ(*found.share_of(found.flops_causal, found.peak_flops), 150 * 4e9 / 2e13);
  EXPECT_FALSE(found.share_of(found.flops_full, found.gemm_flops));
}

TEST_F(FiguresOfTitan, CountFromTheLaunchToTheFirstStep) {
  write_timeline(0, 10);
  const BenchFigures found = figures({.launched = 1000.25});
  EXPECT_EQ(found.to_first_step, 0.25);
  EXPECT_EQ(found.to_first_step_end, 1.25);
}

TEST_F(FiguresOfTitan, TellTheTrafficOfOneStepOfTheBusiestRank) {
  write_timeline(0, 10);
  write_timeline(1, 50);
  const BenchTraffic found = figures().traffic;
  EXPECT_EQ(found.step, 4);
  EXPECT_EQ(found.bytes_of_all_ranks, 68);
  EXPECT_EQ(found.busiest_rank, 1);
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].operation, "all_reduce");
  EXPECT_EQ(found.rows[0].bytes, 50);
}

TEST_F(FiguresOfTitan, TakeCountsBetweenTheMarksOfTheMeasuredSteps) {
  MeasuredRun run;
  for (int step = 1; step <= 5; ++step)
    run.marks.push_back({step, CpuCounts{step * 2.0, step * 30.0, std::nullopt}});
  const BenchFigures found = figures(run);
  ASSERT_TRUE(found.per_step);
  EXPECT_EQ(found.per_step->cpu_seconds, 2);
  EXPECT_EQ(found.per_step->instructions, 30);
  EXPECT_FALSE(found.per_step->cycles);
  run.marks.pop_back();
  EXPECT_FALSE(figures(run).per_step);
  EXPECT_EQ(figures(run).counters_refused, "the program did not report the end of its steps");
}

TEST_F(FiguresOfTitan, TakeCountsFromTheMarksThatHaveSome) {
  MeasuredRun run;
  for (int step = 1; step <= 5; ++step) run.marks.push_back({step, std::nullopt});
  run.marks[2].counts = CpuCounts{10.0, std::nullopt, std::nullopt};
  run.marks[4].counts = CpuCounts{13.0, std::nullopt, std::nullopt};
  ASSERT_TRUE(figures(run).per_step);
  EXPECT_EQ(figures(run).per_step->cpu_seconds, 1.5);
  run.marks[2].counts.reset();  // all steps were over when they were read
  EXPECT_FALSE(figures(run).per_step);
  EXPECT_EQ(figures(run).counters_refused,
            "the measured steps were too short to read counters between them");
}

TEST_F(FiguresOfTitan, AreRefusedWhenStepsAreMissing) {
  write("metrics.jsonl", "{\"step\":3,\"time_metrics/end_to_end(s)\":1.0}\n");
  try {
    figures();
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("the times of 1 of 3 measured steps"));
  }
}

MeasuredRun that_printed(const std::string& text) {
  return {.output = text, .peak_resident_bytes = 77};
}

TEST(FiguresOfOther, AreThoseOfItsLastLineOfFigures) {
  const BenchFigures found = figures_of_other(
      that_printed("hello\n{\"step\": 1}\n{\"tokens_per_second\": 1}\n"
                   "{\"tokens_per_second\": 50, \"step_seconds\": [2, 4, 3], \"ranks\": 2}"),
      {});
  EXPECT_EQ(found.tokens_per_second, 50);
  EXPECT_EQ(found.tokens_per_step, 150);
  EXPECT_EQ(found.peak_bytes, 77);
  EXPECT_EQ(found.ranks, 2);
}

TEST(FiguresOfOther, AreRefusedByName) {
  for (const auto& [printed, complaint] : std::vector<std::pair<const char*, const char*>>{
           {"nothing\n", "no line of JSON"},
           {"{\"tokens_per_second\": \"fast\"}\n", "not a number above 0: \"fast\""},
           {"{\"tokens_per_second\": 0}\n", "not a number above 0: 0"},
           {"{\"tokens_per_second\": 1, \"step_seconds\": [1, -1]}\n", "holds -1"}}) {
    try {
      figures_of_other(that_printed(printed), {});
      FAIL() << printed;
    } catch (const Error& e) {
      EXPECT_THAT(e.message(), HasSubstr(complaint));
    }
  }
}

}  // namespace
}  // namespace titan::commands
