#include "plugins/commands/top/view.h"

#include <gtest/gtest.h>
#include <titan/shown_text.h>

#include "tests/plugins/error_of.h"

namespace titan::commands {
namespace {

using titan::testing::holds;

constexpr double kNow = 1000;

RankStatus working(int64_t rank) {
  RankStatus status;
  status.rank = rank;
  status.world_size = 4;
  status.time = kNow - 1;
  status.state = "running";
  status.step = 50;
  status.steps = 100;
  status.step_seconds = 2;
  status.waiting_seconds = 0;
  return status;
}

RankStatuses four() {
  RankStatuses statuses;
  for (int64_t rank = 0; rank < 4; ++rank) statuses.ranks.push_back(working(rank));
  return statuses;
}

std::vector<RankMark> marks(const RankStatuses& statuses) {
  std::vector<RankMark> marks;
  for (const RankRow& row : to_snapshot(statuses, kNow).rows) marks.push_back(row.mark);
  return marks;
}

constexpr RankMark kNone = RankMark::none;

TEST(RunSnapshot, RanksThatWorkHaveNoMark) {
  EXPECT_EQ(marks(four()), (std::vector<RankMark>(4, kNone)));
  EXPECT_DOUBLE_EQ(to_snapshot(four(), kNow).seconds_left(), 100);
}

TEST(RunSnapshot, SilentIsWhoHasSaidNothingForMoreThanFiveSecondsAndHasNotEnded) {
  RankStatuses statuses = four();
  statuses.ranks[0].time = kNow - 5;
  statuses.ranks[1].time = kNow - 5.1;
  statuses.ranks[2].time = RankStatus::kUnknown;
  statuses.ranks[3].time = kNow - 50;
  statuses.ranks[3].state = "ended";
  EXPECT_EQ(marks(statuses),
            (std::vector<RankMark>{kNone, RankMark::silent, RankMark::silent, RankMark::ended}));
}

TEST(RunSnapshot, WhoWorksWhileHalfOfTheOthersWaitIsAwaited) {
  RankStatuses statuses = four();
  statuses.ranks[0].waiting_seconds = statuses.ranks[1].waiting_seconds = 6;
  EXPECT_EQ(marks(statuses),
            (std::vector<RankMark>{kNone, kNone, RankMark::awaited, RankMark::awaited}));
  statuses.ranks[1].waiting_seconds = 4;  // only a short wait
  EXPECT_EQ(marks(statuses), (std::vector<RankMark>(4, kNone)));
}

TEST(RunSnapshot, OneStepApartIsNotBehind) {
  RankStatuses statuses = four();
  statuses.ranks[0].step = 49;
  statuses.ranks[1].step = 48;
  EXPECT_EQ(marks(statuses), (std::vector<RankMark>{kNone, RankMark::behind, kNone, kNone}));
}

TEST(RunSnapshot, CountsRanksThatHaveWrittenNothing) {
  RankStatuses statuses = four();
  statuses.ranks.pop_back();
  EXPECT_EQ(to_snapshot(statuses, kNow).num_missing, 1);
  statuses.unreadable.push_back("rank_3.json: torn");
  EXPECT_EQ(to_snapshot(statuses, kNow).num_missing, 0);
}

TEST(TopView, FitsIntoTerminalsOfAnySize) {
  RankStatuses statuses = four();
  statuses.ranks[1].doing = "前向传播前向传播前向传播前向传播前向传播";
  statuses.ranks[2].doing = "\x1b[2J\xff" + std::string(300, 'x');
  statuses.ranks[3].time = 0;
  for (const size_t columns : {1u, 20u, 79u, 80u, 200u})
    for (const size_t rows : {1u, 5u, 24u}) {
      const View view = to_view(to_snapshot(statuses, kNow), "\x1b]0;x\x07" + std::string(90, 'n'),
                                {.columns = columns, .rows = rows});
      EXPECT_LE(view.lines.size(), rows);
      for (const std::string& line : view.lines) {
        EXPECT_LE(columns_of(line), columns) << line;
        EXPECT_EQ(line.find('\x1b'), line.npos);
      }
    }
}

TEST(TopView, PagesHoldEveryRankOnce) {
  RankStatuses statuses;
  for (int64_t rank = 0; rank < 100; ++rank) statuses.ranks.push_back(working(rank));
  std::string all;
  const ViewOptions options{.columns = 80, .rows = 24, .order = RankOrder::rank};
  const size_t num_pages = to_view(to_snapshot(statuses, kNow), "run", options).num_pages;
  EXPECT_GT(num_pages, 4u);
  for (size_t page = 0; page < num_pages; ++page) {
    ViewOptions one = options;
    one.page = page;
    for (const std::string& line : to_view(to_snapshot(statuses, kNow), "run", one).lines)
      all += line + "\n";
  }
  for (int rank = 0; rank < 100; ++rank) {
    const std::string begin =
        "\n" + std::string(rank < 10 ? 4 : 3, ' ') + std::to_string(rank) + " ";
    const size_t at = all.find(begin);
    EXPECT_NE(at, all.npos) << rank;
    EXPECT_EQ(all.find(begin, at + 1), all.npos) << rank;
  }
  ViewOptions beyond = options;
  beyond.page = 1000;
  EXPECT_EQ(to_view(to_snapshot(statuses, kNow), "run", beyond).page, num_pages - 1);
}

TEST(TopView, TextsAreCutByColumns) {
  EXPECT_EQ(in_columns("abc", 5), "abc  ");
  EXPECT_EQ(in_columns("abcdef", 4), "abc~");
  EXPECT_EQ(in_columns("前向传", 5), "前向~");
  EXPECT_EQ(in_columns("前向传", 4), "前~ ");
  EXPECT_EQ(in_columns("abc", 0), "");
}

TEST(TopView, WhatARankDoesLeavesOutItsStepAndEndsWithWhatItWaitsIn) {
  RankStatuses statuses = four();
  statuses.ranks[0].doing = "in step 50, in backward of stage 0, microbatch 3 (0B3), waits in send";
  const auto shown = [&](size_t columns) {
    return to_view(to_snapshot(statuses, kNow), "run", {.columns = columns}).lines.at(3);
  };
  EXPECT_TRUE(holds(shown(140), " backward of stage 0, microbatch 3 (0B3), waits in send "));
  EXPECT_TRUE(holds(shown(80), " waits in send  "));
}

TEST(TopView, AStatusThatIsOldIsNotShownAsWhatTheRankIsDoing) {
  RankStatuses statuses = four();
  for (RankStatus& status : statuses.ranks) status.doing = "forward";
  statuses.ranks[1].time = kNow - 4;
  statuses.ranks[2].time = kNow - 187;
  statuses.ranks[3].time = kNow - 187;
  statuses.ranks[3].state = "ended";
  const std::vector<std::string> lines =
      to_view(to_snapshot(statuses, kNow), "run", {.columns = 80, .order = RankOrder::rank}).lines;
  const auto row = [&](int rank) {
    for (const std::string& line : lines)
      if (line.starts_with("    " + std::to_string(rank) + " ")) return line;
    return std::string();
  };
  EXPECT_TRUE(holds(row(0), " forward "));
  EXPECT_TRUE(holds(row(1), " no sign of life 4 s"));
  EXPECT_TRUE(holds(row(2), " no sign of life 3:07"));
  EXPECT_TRUE(holds(row(2), "! SILENT"));
  EXPECT_TRUE(holds(row(3), " forward ")) << "it has reported its end";
}

TEST(TopView, ColoursAreNeverTheOnlySign) {
  RankStatuses statuses = four();
  statuses.ranks[2].time = 0;
  const View view = to_view(to_snapshot(statuses, kNow), "run", {.has_colours = true});
  EXPECT_TRUE(holds(view.lines[3], "\033[1;31m"));
  EXPECT_TRUE(holds(view.lines[3], "! SILENT"));
}

}  // namespace
}  // namespace titan::commands
