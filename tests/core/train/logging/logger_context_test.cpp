// The terminal properties that loggers receive, from common environment variables.
#include "core/train/logging/logger_context.h"

#include <gtest/gtest.h>

namespace titan::core {
namespace {

LoggerContext context_of(std::map<std::string, std::string> variables, bool is_terminal = true,
                         const MetricsSection& metrics = {}) {
  return logger_context(metrics, Environment(std::move(variables)), is_terminal);
}

TEST(LoggerContext, ATerminalIsColoredAndRedrawn) {
  const LoggerContext context = context_of({{"TERM", "xterm"}});
  EXPECT_TRUE(context.is_terminal);
  EXPECT_FALSE(context.disable_color);
  EXPECT_TRUE(context.can_redraw);
  EXPECT_EQ(context.columns, 0);
}

TEST(LoggerContext, ATerminalThatObeysNothingGetsPlainLines) {
  for (const char* const term : {"dumb", ""}) {
    const LoggerContext context = context_of({{"TERM", term}});
    EXPECT_FALSE(context.can_redraw) << term;
    EXPECT_TRUE(context.disable_color) << term;
  }
  EXPECT_FALSE(context_of({{"TERM", "xterm"}}, /*is_terminal=*/false).can_redraw);
}

TEST(LoggerContext, ColorsAreTurnedOffByNoColorAndByTheConfiguration) {
  EXPECT_TRUE(context_of({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).disable_color);
  EXPECT_TRUE(context_of({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).can_redraw);
  EXPECT_FALSE(context_of({{"TERM", "xterm"}, {"NO_COLOR", ""}}).disable_color);
  MetricsSection metrics;
  metrics.disable_color_printing = true;
  EXPECT_TRUE(context_of({{"TERM", "xterm"}}, /*is_terminal=*/true, metrics).disable_color);
}

TEST(LoggerContext, TakesColumnsAsFarAsTheyAreANumber) {
  EXPECT_EQ(context_of({{"COLUMNS", "120"}}).columns, 120);
  EXPECT_EQ(context_of({{"COLUMNS", "wide"}}).columns, 0);
  EXPECT_EQ(context_of({{"COLUMNS", "0"}}).columns, 0);
}

}  // namespace
}  // namespace titan::core
