// `titan describe pipeline_schedule NAME --ranks ...`: its output, files and refusals, through the
// command's entry function and the built plugins.
#include "core/pipeline/description.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "core/commands/command.h"
#include "tests/core/plugin/plugin_fixture.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

std::string describe(std::vector<std::string> words) {
  words.insert(words.begin(), "pipeline_schedule");
  words.insert(words.end(), {"--path", TITAN_PLUGIN_DIR});
  ::testing::internal::CaptureStdout();
  try {
    run_describe(words, {});
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

/// The message of the config Error for which the program exits with code 2.
std::string command_refusal(const std::vector<std::string>& words) {
  const Error error = error_of([&] { describe(words); });
  EXPECT_EQ(error.kind(), ErrorKind::config) << error.message();
  return error.message();
}

TEST(DescribePipeline, DrawsTheScheduleAndSaysWhatItCosts) {
  EXPECT_EQ(describe({"1F1B", "--ranks", "2", "--microbatches", "2", "--costs", "1,1,1"}),
            "1F1B: 2 ranks, 2 stages, 2 microbatches; costs F 1, I 1, W 1\n"
            "\n"
            "rank 0  0F0 0F1 .   .   0B0---- .   0B1----\n"
            "rank 1  .   1F0 1B0---- 1F1 1B1---- .   .\n"
            "\n"
            "step 9, mean bubble 33.3 %\n"
            "\n"
            "rank  stages  busy  bubble  idle inside  peak activations  peak until I\n"
            "0     0       6     33.3 %  3            2                 2\n"
            "1     1       6     33.3 %  0            1                 1\n");
}

TEST(DescribePipeline, ShowsTheOptionsWithoutAShape) {
  EXPECT_TRUE(holds(describe({"csv"}), "file"));
}

TEST(DescribePipeline, WritesTablesThatTheScheduleCsvReads) {
  const TemporaryFolder folder;
  const std::string first = (folder.path() / "first.csv").string();
  const std::string second = (folder.path() / "second.csv").string();
  const std::string svg = (folder.path() / "drawing.svg").string();
  const std::string lowered = (folder.path() / "lowered.csv").string();
  describe({"DualPipeV", "--ranks", "2", "--microbatches", "5", "--csv", first, "--svg", svg,
            "--lowered", lowered});
  describe(
      {"csv", "--option", "file=" + first, "--ranks", "2", "--microbatches", "5", "--csv", second});
  EXPECT_TRUE(holds(contents(first), ")OVERLAP_F_B"));
  EXPECT_EQ(contents(first), contents(second));
  EXPECT_TRUE(holds(contents(lowered), "0F0,0SEND_F0"));
  EXPECT_TRUE(holds(contents(svg), "DualPipeV: 2 ranks, 4 stages, 5 microbatches"));
}

TEST(DescribePipeline, RefusesWhatCannotBe) {
  EXPECT_EQ(command_refusal({"GPipe", "--ranks", "2", "--stages", "4", "--microbatches", "2"}),
            "schedule 'GPipe' needs exactly 1 stage per rank, but there are 2");
  EXPECT_EQ(command_refusal({"GPipe", "--ranks", "2"}), "--ranks needs --microbatches as well");
  EXPECT_EQ(command_refusal({"--ranks", "2", "--microbatches", "2"}),
            "--microbatches needs the name of one pipeline_schedule");
  EXPECT_EQ(command_refusal({"GPipe", "--ranks", "0", "--microbatches", "2"}),
            "--ranks must be >= 1, got 0");
  EXPECT_TRUE(holds(command_refusal({"GPipe", "--ranks", "2", "--microbatches", "2", "--json"}),
                    "exclude each other"));
  for (const char* costs : {"1,1", "1,1,0", "1,1,1,1", "1;1;1", "nan,1,1", ""})
    EXPECT_EQ(
        command_refusal({"GPipe", "--ranks", "2", "--microbatches", "2", "--costs", costs}),
        std::string("--costs must be three numbers > 0 for F, I and W, such as 1,1,1, got '") +
            costs + "'");
  EXPECT_EQ(command_refusal({"csv", "--ranks", "2", "--microbatches", "2", "--option", "fil=x"}),
            "unknown option 'fil' for pipeline_schedule 'csv'; did you mean 'file'?");
  EXPECT_EQ(command_refusal({"csv", "--ranks", "2", "--microbatches", "2", "--option", "file"}),
            "--option must be NAME=VALUE, got 'file'");
}

TEST(DescribePipeline, SaysWhichFileCannotBeWritten) {
  const Error error = error_of([] {
    describe({"GPipe", "--ranks", "2", "--microbatches", "2", "--svg", "/nowhere/drawing.svg"});
  });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(), "cannot write /nowhere/drawing.svg: No such file or directory");
}

}  // namespace
}  // namespace titan::core
