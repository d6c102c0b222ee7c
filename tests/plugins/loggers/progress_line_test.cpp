// The progress line's text; tests/end_to_end/terminal_test.py shows it on a terminal.
#include "plugins/loggers/console/progress_line.h"

#include <gtest/gtest.h>

#include <titan/shown_text.h>

namespace titan::loggers {
namespace {

const Progress kWholeProgress = {.step = 120,
                                 .num_steps = 1000,
                                 .seconds_left = 200,
                                 .loss = 7.365421,
                                 .tokens_per_second = 12345.4,
                                 .memory_gib = 1.7};
const std::string kWholeLine =
    "step 120/1000 12%  3m20s left  loss 7.36542  12,345 tokens/s  memory 1.70GiB";

TEST(ProgressLine, TellsStepsTimeLossAndSpeed) {
  EXPECT_EQ(format_progress_line(kWholeProgress, 100, Style::plain), kWholeLine);
  EXPECT_EQ(format_progress_line({.step = 3}, 100, Style::plain), "step 3");
  EXPECT_EQ(format_progress_line({.step = 999, .num_steps = 1000}, 100, Style::plain),
            "step 999/1000 99%")
      << "everything only when all is done";
}

TEST(ProgressLine, IsCutToTheColumnsThatThereAre) {
  for (size_t columns = 0; columns <= kWholeLine.size() + 1; ++columns)
    EXPECT_EQ(format_progress_line(kWholeProgress, columns, Style::plain),
              kWholeLine.substr(0, columns));
}

TEST(ProgressLine, ColorsTakeNoColumns) {
  for (size_t columns = 0; columns <= kWholeLine.size() + 1; ++columns) {
    std::string line = format_progress_line(kWholeProgress, columns, Style::colored);
    EXPECT_TRUE(line.ends_with(kResetColor)) << "the following text has no color";
    for (size_t at; (at = line.find('\033')) != line.npos;)
      line.erase(at, line.find('m', at) + 1 - at);
    EXPECT_EQ(line, kWholeLine.substr(0, columns));
  }
}

TEST(ProgressLine, CutsWideCharactersWhole) {
  EXPECT_EQ(cut_to_columns("損失a", 5), "損失a");
  EXPECT_EQ(cut_to_columns("損失a", 4), "損失");
  EXPECT_EQ(cut_to_columns("損失a", 3), "損");
  EXPECT_EQ(cut_to_columns("損失a", 1), "");
}

TEST(ProgressLine, WritesTimesInTwoUnits) {
  const std::pair<double, const char*> kCases[] = {
      {-1, "0s"},       {0, "0s"},         {0.2, "1s"},     {59, "59s"},
      {59.5, "1m00s"},  {200, "3m20s"},    {3600, "1h00m"}, {18420, "5h07m"},
      {86400, "1d00h"}, {183600, "2d03h"}, {1e9, ">1000d"}, {1e300, ">1000d"}};
  for (const auto& [seconds, text] : kCases) EXPECT_EQ(time_text(seconds), text) << seconds;
  EXPECT_EQ(time_text(0.0 / 0.0), ">1000d");
}

TEST(StepRate, LeavesTheFirstStepOut) {
  StepRate rate;
  EXPECT_FALSE(rate.steps_per_second());
  rate.add(1, 100);
  EXPECT_FALSE(rate.steps_per_second()) << "it warms up";
  rate.add(3, 101);
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 2);
  rate.add(3, 102);
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 1);
}

TEST(StepRate, ForgetsWhatIsLongAgo) {
  StepRate rate;
  for (int64_t second = 0; second <= 100; ++second) rate.add(100 * second, 1.0 * second);
  for (int64_t second = 1; second <= 40; ++second) rate.add(10000 + second, 100.0 + second);
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 1);
  rate.add(10041, 100140);  // a step of a day fills the whole window
  EXPECT_NEAR(*rate.steps_per_second(), 1e-5, 1e-7);
}

TEST(StepRate, CountsQuickStepsWithoutKeepingThemAll) {
  StepRate rate;
  for (int64_t step = 0; step <= 1000; ++step) rate.add(step, 0.001 * static_cast<double>(step));
  EXPECT_NEAR(*rate.steps_per_second(), 1000, 1);
}

}  // namespace
}  // namespace titan::loggers
