// The jsonl logger: its files read back exactly, also after a resume.
#include "plugins/loggers/jsonl/jsonl_logger.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

RunInfo run_in(const TestFolder& folder, int64_t resumed_step = 0) {
  RunInfo run;
  run.dump_folder = folder.path();
  run.resumed_step = resumed_step;
  return run;
}

/// Logs the steps [first, last] with a "loss" of a tenth of the step.
void log_steps(const RunInfo& run, int64_t first, int64_t last) {
  JsonlLogger logger{LoggerContext()};
  logger.start(run);
  for (int64_t step = first; step <= last; ++step) {
    const Scalar loss{"loss", static_cast<double>(step) / 10};
    logger.log(step, {&loss, 1});
  }
  logger.finish(RunOutcome::finished);
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<int64_t> steps_of(const std::string& text) {
  std::vector<int64_t> steps;
  for (const auto& line : lines_of(text)) steps.push_back(line.at("step"));
  return steps;
}

TEST(JsonlLogger, RefusesAPipeThatNobodyReads) {
  TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.at("metrics.jsonl").c_str(), 0600), 0);
  const Error error = error_of([&] { log_steps(run_in(folder), 1, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "metrics.jsonl"));
}

TEST(JsonlLogger, KeepsFullPrecision) {
  const std::vector<double> kValues = {0.1,
                                       1.0 / 3,
                                       1e-320,
                                       1.7976931348623157e308,
                                       8192,
                                       -0.0,
                                       std::nextafter(1.0, 2.0),
                                       9007199254740993.0};
  TestFolder folder;
  JsonlLogger logger{LoggerContext()};
  logger.start(run_in(folder));
  for (size_t i = 0; i < kValues.size(); ++i) {
    const Scalar scalar{"memory/max_active(%)", kValues[i]};
    logger.log(static_cast<int64_t>(i) + 1, {&scalar, 1});
    // each line reaches the file at once, so a killed run loses none
    const auto lines = lines_of(folder.read("metrics.jsonl"));
    ASSERT_EQ(lines.size(), i + 1);
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_GT(lines[i].at("wall_time").get<double>(), 1.6e9);
    EXPECT_EQ(lines[i].at("memory/max_active(%)").get<double>(), kValues[i]);
  }
  logger.finish(RunOutcome::finished);
}

TEST(JsonlLogger, WritesWhatIsNoNumberAsText) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Scalar> scalars = {{"a", std::nan("")}, {"b", inf}, {"c", -inf}};
  TestFolder folder;
  JsonlLogger logger{LoggerContext()};
  logger.start(run_in(folder));
  logger.log(1, scalars);
  const auto line = lines_of(folder.read("metrics.jsonl")).at(0);
  EXPECT_EQ(line.at("a"), "nan");
  EXPECT_EQ(line.at("b"), "inf");
  EXPECT_EQ(line.at("c"), "-inf");
}

TEST(JsonlLogger, AFreshRunStartsAnew) {
  TestFolder folder;
  log_steps(run_in(folder), 1, 5);
  log_steps(run_in(folder), 1, 2);
  EXPECT_EQ(steps_of(folder.read("metrics.jsonl")), (std::vector<int64_t>{1, 2}));
}

TEST(JsonlLogger, AResumedRunReplacesTheStepsDoneAgain) {
  TestFolder folder;
  log_steps(run_in(folder), 1, 5);
  const std::string before = folder.read("metrics.jsonl");
  log_steps(run_in(folder, 3), 4, 6);
  const std::string after = folder.read("metrics.jsonl");
  EXPECT_EQ(steps_of(after), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(after.substr(0, 100), before.substr(0, 100));
  log_steps(run_in(folder, 9), 10, 10);  // no lines to drop
  EXPECT_EQ(steps_of(folder.read("metrics.jsonl")), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 10}));
}

TEST(JsonlLogger, AResumedRunWithoutAFileBeginsOne) {
  TestFolder folder;
  log_steps(run_in(folder, 3), 4, 5);
  EXPECT_EQ(steps_of(folder.read("metrics.jsonl")), (std::vector<int64_t>{4, 5}));
}

TEST(JsonlLogger, AResumedRunDropsALineThatAKillCutShort) {
  for (const char* cut : {"{\"step\":2,\"lo", "{\"step\":2}", "{"}) {
    TestFolder folder;
    folder.write("metrics.jsonl", std::string("{\"step\":1}\n") + cut);
    log_steps(run_in(folder, 2), 3, 3);
    EXPECT_EQ(steps_of(folder.read("metrics.jsonl")), (std::vector<int64_t>{1, 3}));
  }
}

TEST(JsonlLogger, ALineThatIsNoneOfOursStopsTheResumeUntouched) {
  for (const char* line : {"hello", "", "[1]", "{\"step\":\"4\"}"}) {
    TestFolder folder;
    const std::string content = std::string("{\"step\":1}\n") + line + "\n{\"step\":9}\n";
    folder.write("metrics.jsonl", content);
    const Error error = error_of([&] { log_steps(run_in(folder, 3), 4, 4); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(holds(error.what(), folder.at("metrics.jsonl") + ":2: not a line of metrics"));
    EXPECT_EQ(folder.read("metrics.jsonl"), content);
  }
}

TEST(JsonlLogger, EachRankHasAFileWhenAllWrite) {
  TestFolder folder;
  RunInfo run = run_in(folder);
  run.rank = 3;
  run.config = Value::map({{"metrics", Value::map({{"save_for_all_ranks", true}})}});
  log_steps(run, 1, 1);
  EXPECT_EQ(steps_of(folder.read("metrics_rank_3.jsonl")), std::vector<int64_t>{1});
}

TEST(JsonlLogger, TellsAFullDisk) {
  TestFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.path() / "metrics.jsonl");
  const Error error = error_of([&] { log_steps(run_in(folder), 1, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "metrics.jsonl': No space left on device (errno 28)"));
}

TEST(JsonlLogger, TellsAFolderThatIsNone) {
  TestFolder folder;
  RunInfo run = run_in(folder);
  run.dump_folder = folder.path() / "missing";
  const Error error = error_of([&] { log_steps(run, 1, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "missing/metrics.jsonl': No such file or directory (errno 2)"));
}

}  // namespace
}  // namespace titan::loggers
