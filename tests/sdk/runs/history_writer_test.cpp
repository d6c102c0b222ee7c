// Readers of history.jsonl find all that a run wrote, over several sessions.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <titan/program/clock.h>
#include <titan/runs/event.h>
#include <titan/runs/goodput.h>
#include <titan/runs/history_writer.h>

#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

Value start_at(int64_t step, double lr = 1) {
  return Value::map({{"resumed_step", step}, {"config", Value::map({{"lr", lr}})}});
}

Value phases(double forward) {
  return Value::map({{"forward", forward}});
}

TEST(HistoryWriter, WritesWhatReadersFind) {
  const testing::TestFolder folder;
  HistoryWriter writer(folder.path(), start_at(0), wall_seconds() - 1);
  writer.first_step(1);
  writer.steps(1, 4, phases(0.5));
  writer.validation(4, 0.25);
  writer.checkpoint(4, 0.125);
  writer.end(4, "failed", "no \"reason\"\n");

  const RunHistory found = read_history(folder.path());
  EXPECT_EQ(found.num_unreadable, 0);
  ASSERT_EQ(found.events.size(), 6u);
  EXPECT_EQ(found.events[0].details.at("config").at("lr").as_number(), 1);
  EXPECT_EQ(found.events[2].from, 1);
  EXPECT_EQ(found.events[2].to, 4);
  EXPECT_EQ(found.events[2].phase("forward"), 0.5);
  EXPECT_EQ(found.events[3].seconds, 0.25);
  EXPECT_EQ(found.events[4].seconds, 0.125);
  EXPECT_EQ(found.events[5].error, "no \"reason\"\n");
  EXPECT_GT(writer.goodput(), 0);
}

TEST(HistoryWriter, AnUndoneStepIsNotDone) {
  const testing::TestFolder folder;
  HistoryWriter writer(folder.path(), start_at(0), wall_seconds() - 1);
  writer.first_step(1);
  writer.undone(2, 1, "repeat", "");
  writer.undone(2, 2, "skip", "a \"reason\"\n");

  const RunHistory found = read_history(folder.path());
  EXPECT_EQ(found.num_unreadable, 0);
  ASSERT_EQ(found.events.size(), 4u);
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(found.events[i].kind, RunEvent::Kind::undone);
    EXPECT_EQ(found.events[i].step, 2);
    EXPECT_EQ(found.events[i].attempt, static_cast<int64_t>(i) - 1);
    EXPECT_EQ(found.events[i].is_skipped, i == 3);
  }
  EXPECT_EQ(found.events[3].reason, "a \"reason\"\n");
  EXPECT_EQ(measure_goodput(found.events).sessions().back().last_step, 1);
}

TEST(HistoryWriter, GoesOnWhereTheSameRunIsStartedAgain) {
  const testing::TestFolder folder;
  const auto num_starts = [&] {
    int64_t number = 0;
    for (const RunEvent& event : read_history(folder.path()).events)
      number += event.kind == RunEvent::Kind::start;
    return number;
  };
  HistoryWriter(folder.path(), start_at(0), 100);
  HistoryWriter(folder.path(), start_at(0), 200);
  EXPECT_EQ(num_starts(), 2) << "it was killed before its first checkpoint";
  HistoryWriter(folder.path(), start_at(0, 2), 300);
  EXPECT_EQ(num_starts(), 1) << "another configuration";
  HistoryWriter(folder.path(), start_at(7, 3), 400).end(9, "finished", "");
  EXPECT_EQ(num_starts(), 2) << "it was resumed";
  HistoryWriter(folder.path(), start_at(9, 3), 500).end(9, "finished", "");
  EXPECT_EQ(num_starts(), 3) << "it was resumed with more steps";
  HistoryWriter(folder.path(), start_at(0, 3), 600);
  EXPECT_EQ(num_starts(), 1) << "it has finished";
}

TEST(HistoryWriter, CutsAwayALineThatAKillHasTorn) {
  const testing::TestFolder folder;
  HistoryWriter(folder.path(), start_at(0), 100);
  std::ofstream(folder.path() / "history.jsonl", std::ios::app) << R"({"event":"first_st)";
  HistoryWriter(folder.path(), start_at(0), 200);
  const RunHistory found = read_history(folder.path());
  EXPECT_EQ(found.events.size(), 2u);
  EXPECT_EQ(found.num_unreadable, 0);
}

TEST(HistoryWriter, APlaceThatCannotBeWrittenIsWarnedOfOnce) {
  const testing::TestFolder folder;
  ::testing::internal::CaptureStderr();
  HistoryWriter writer(folder.path() / "missing", start_at(0), 100);
  writer.steps(1, 1, phases(1));
  writer.end(1, "finished", "");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the history of this run is not written: cannot open"), std::string::npos);
  EXPECT_EQ(said.find("warning"), said.rfind("warning")) << said;
}

}  // namespace
}  // namespace titan
