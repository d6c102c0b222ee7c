// Timelines of schedules as text and as SVG.
#include "core/pipeline/timeline.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "core/pipeline/plan.h"
#include "tests/core/pipeline/pipeline_fixture.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using titan::testing::holds;

PipelineAnalysis timed_analysis_of(const char* name, PipelineShape shape, ActionCosts costs = {}) {
  return analyze(make_plan(*schedule_named(name), name, shape), costs);
}

TEST(PipelineTimeline, HasARowPerRankAndAColumnPerUnit) {
  EXPECT_EQ(timeline_text(timed_analysis_of("1F1B", {2, 2, 2}), 120),
            "rank 0  0F0 0F1 .   .   0B0---- .   0B1----\n"
            "rank 1  .   1F0 1B0---- 1F1 1B1---- .   .\n");
}

TEST(PipelineTimeline, JoinsPairsThatOverlap) {
  EXPECT_TRUE(holds(timeline_text(timed_analysis_of("DualPipeV", {2, 4, 4}), 200), "0F3+3B1----"));
}

TEST(PipelineTimeline, WrapsBetweenColumns) {
  const std::string text = timeline_text(timed_analysis_of("ZBVZeroBubble", {4, 8, 16}), 80);
  std::istringstream lines(text);
  int num_rows = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u);
    if (line.starts_with("rank 0")) ++num_rows;
  }
  EXPECT_EQ(num_rows, 8);  // 14 units of 5 characters per line, 99 units in all
  // nothing is lost at the borders of blocks
  for (const char* cell : {"0F0", "0F15", "7W15", "0W15"}) EXPECT_TRUE(holds(text, cell));
}

TEST(PipelineTimeline, SvgHasABoxWithATitleForEachAction) {
  const std::string svg = timeline_svg(timed_analysis_of("1F1B", {2, 2, 3}), "a < b & c");
  EXPECT_TRUE(svg.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_TRUE(holds(svg, "a &lt; b &amp; c"));
  EXPECT_TRUE(holds(svg, "<title>1B2, "));
  size_t num_titles = 0;
  for (size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1))
    ++num_titles;
  EXPECT_EQ(num_titles, 12u);
}

}  // namespace
}  // namespace titan::core
