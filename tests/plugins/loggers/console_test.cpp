// The console logger's lines, compared with torchtitan's for the same numbers.
#include "plugins/loggers/console/console_logger.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

std::string plain(int64_t step, const std::vector<Scalar>& scalars) {
  return format_console_line(step, scalars, Style::plain);
}

const std::vector<Scalar> kAll = {{"loss_metrics/global_avg_loss", 7.365421},
                                  {"loss_metrics/global_max_loss", 9.0},
                                  {"grad_norm", 1.23456},
                                  {"throughput(tps)", 1843.5},
                                  {"tflops", 1234.567},
                                  {"mfu(%)", 41.256},
                                  {"memory/max_active(GiB)", 1.2},
                                  {"memory/max_active(%)", 15.0},
                                  {"memory/max_reserved(GiB)", 1.7},
                                  {"memory/max_reserved(%)", 21.25}};

TEST(ConsoleLine, IsTorchtitansLine) {
  EXPECT_EQ(plain(1, kAll),
            "step:  1  loss:  7.36542  grad_norm:  1.2346  memory:  1.70GiB(21.25%)  "
            "tps: 1,844  tflops: 1,234.57  mfu: 41.26%\n");
}

TEST(ConsoleLine, HasTorchtitansColors) {
  EXPECT_EQ(format_console_line(100, kAll, Style::colored),
            "\033[31mstep: 100  \033[32mloss:  7.36542  \033[38;2;180;60;0mgrad_norm:  1.2346  "
            "\033[38;2;54;234;195mmemory:  1.70GiB(21.25%)  \033[34mtps: 1,844  "
            "\033[36mtflops: 1,234.57  \033[35mmfu: 41.26%\033[39m\n");
}

TEST(ConsoleLine, LeavesOutWhatWasNotMeasured) {
  EXPECT_EQ(plain(3, {{"loss_metrics/global_avg_loss", 2.5}, {"memory/max_active(GiB)", 0.5}}),
            "step:  3  loss:  2.50000  memory:  0.50GiB\n");
  EXPECT_EQ(plain(3, {{"n_tokens_seen", 17}}), "") << "nothing to show";
}

TEST(ConsoleLine, TellsValidation) {
  const std::vector<Scalar> validation = {{"validation_metrics/loss", 7.12345},
                                          {"validation_metrics/throughput(tps)", 3210123},
                                          {"validation_metrics/memory/max_active(GiB)", 1.7},
                                          {"validation_metrics/memory/max_active(%)", 21.25}};
  EXPECT_EQ(plain(10, validation),
            "validate step: 10  loss:  7.1235  memory:  1.70GiB(21.25%)  tps: 3,210,123\n");
  std::vector<Scalar> both = validation;
  both.push_back({"grad_norm", 1});
  EXPECT_EQ(plain(10, both),
            "step: 10  grad_norm:  1.0000\n"
            "validate step: 10  loss:  7.1235  memory:  1.70GiB(21.25%)  tps: 3,210,123\n");
}

TEST(ConsoleLine, GroupsThousands) {
  const std::pair<double, const char*> kCases[] = {
      {0, "0"},   {0.5, "0"},          {999, "999"},           {999.5, "1,000"},  {1000, "1,000"},
      {2.5, "2"}, {123456, "123,456"}, {1234567, "1,234,567"}, {-1234, "-1,234"}, {-123, "-123"}};
  for (const auto& [value, text] : kCases)
    EXPECT_EQ(plain(1, {{"throughput(tps)", value}}), std::string("step:  1  tps: ") + text + "\n");
}

TEST(ConsoleLine, ShowsNumbersThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      plain(1, {{"loss_metrics/global_avg_loss", -nan}, {"grad_norm", inf}, {"tflops", -inf}}),
      "step:  1  loss:      nan  grad_norm:     inf  tflops: -inf\n");
  EXPECT_EQ(plain(1, {{"mfu(%)", 1e300}}).size(),
            std::string("step:  1  mfu: .00%\n").size() + 301);
}

TEST(ConsoleLogger, ColorsOnlyATerminalThatMayBeColored) {
  for (const bool is_terminal : {false, true}) {
    for (const bool disable_color : {false, true}) {
      TestFolder folder;
      LoggerContext context;
      context.is_terminal = is_terminal;
      context.disable_color = disable_color;
      ConsoleLogger logger(context, OutputFile(folder.at("out"), OutputFile::Mode::truncate));
      logger.start(RunInfo());
      logger.log(1, kAll);
      logger.finish(RunOutcome::finished);
      EXPECT_EQ(folder.read("out").find('\033') != std::string::npos,
                is_terminal && !disable_color);
    }
  }
}

TEST(ConsoleLogger, WritesToStandardOutput) {
  ConsoleLogger logger{LoggerContext()};
  ::testing::internal::CaptureStdout();
  logger.log(7, kAll);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), plain(7, kAll));
}

TEST(ConsoleLogger, TellsAFailedWrite) {
  ConsoleLogger logger(LoggerContext(), OutputFile("/dev/full", OutputFile::Mode::truncate));
  const Error error = error_of([&] { logger.log(1, kAll); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "'/dev/full': No space left on device (errno 28)"));
}

}  // namespace
}  // namespace titan::loggers
