// Verdicts on made-up runs with a known cause.
#include "plugins/commands/flight/verdict.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/files/file.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::commands {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using FoundKind = FlightFinding::Kind;

constexpr int64_t kSecond = 1'000'000'000;

/// Ranks whose entries are added one by one.
class MadeUpRanks {
 public:
  explicit MadeUpRanks(int num_ranks) : records_(static_cast<size_t>(num_ranks)) {
    for (int rank = 0; rank < num_ranks; ++rank) {
      at(rank).rank = rank;
      at(rank).written_ns = 100 * kSecond;
    }
  }

  void group(const std::string& name, const std::vector<int>& ranks) {
    for (const int rank : ranks) at(rank).groups[name] = {name, ranks};
  }
  FlightEntry& add(int rank, const std::string& group, const std::string& operation,
                   int64_t sequence, bool is_done = true) {
    FlightEntry entry;
    entry.id = static_cast<int64_t>(at(rank).entries.size());
    entry.group = group;
    entry.operation = operation;
    entry.sequence = sequence;
    entry.in = entry.out = {{8}};
    entry.is_awaited = true;
    entry.is_done = is_done;
    entry.started_ns = (10 + entry.id) * kSecond;
    at(rank).entries.push_back(std::move(entry));
    return at(rank).entries.back();
  }
  void message(int rank, const std::string& group, bool sends, int64_t sequence, bool is_done,
               bool is_awaited = true) {
    FlightEntry& entry = add(rank, group, sends ? "send" : "recv", sequence, is_done);
    entry.is_message = true;
    entry.from = 0;
    entry.to = 1;
    entry.is_awaited = is_awaited;
  }
  FlightRecord& at(int rank) { return records_.at(static_cast<size_t>(rank)); }
  const std::vector<FlightRecord>& records() const { return records_; }
  void lose(int rank) { records_.erase(records_.begin() + rank); }

 private:
  std::vector<FlightRecord> records_;
};

TEST(FlightVerdict, NamesTheMemberThatDidNotCome) {
  MadeUpRanks run(3);
  run.group("fsdp.0", {0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) run.add(rank, "fsdp.0", "all_gather", 1);
  for (const int rank : {0, 2}) run.add(rank, "fsdp.0", "all_gather", 2, false);
  run.at(1).doing = "in step 7, in the data";
  const FlightVerdict verdict = judge(run.records());
  EXPECT_EQ(verdict.culprits, std::vector<int>{1});
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].kind, FoundKind::missing);
  EXPECT_EQ(verdict.findings[0].absent, std::vector<int>{1});
  EXPECT_EQ(verdict.findings[0].waiting, (std::vector<int>{0, 2}));
  EXPECT_EQ(verdict.findings[0].waiting_seconds, 89);
  const std::string text = to_text(verdict, run.records());
  EXPECT_TRUE(holds(text, "rank 1 is where to look\n"));
  EXPECT_TRUE(holds(text,
                    "all_gather number 2 of group 'fsdp.0' (ranks 0, 1 and 2)\n"
                    "  ranks 0 and 2 waited for 1:29; rank 1 did not arrive\n"));
  EXPECT_TRUE(holds(text, "rank 1 was in step 7, in the data\n"));
}

TEST(FlightVerdict, FollowsWhoWaitsForWhom) {
  MadeUpRanks run(
      4);  // tp pairs inside an fsdp group of pairs: rank 3 hangs, 2 waits for it, 0 for 2
  run.group("tp.0", {0, 1});
  run.group("tp.2", {2, 3});
  run.group("fsdp.0", {0, 2});
  run.group("fsdp.1", {1, 3});
  run.add(2, "tp.2", "all_reduce", 5, false);
  run.add(0, "fsdp.0", "reduce_scatter", 3, false);
  run.add(1, "tp.0", "all_reduce", 6, false);
  run.add(3, "tp.2", "all_reduce", 4);
  run.add(2, "tp.2", "all_reduce", 4);
  const FlightVerdict verdict = judge(run.records());
  EXPECT_EQ(verdict.culprits, std::vector<int>{3});
  EXPECT_EQ(verdict.findings.size(), 3u);
}

TEST(FlightVerdict, ACircleIsToBlameAsAWhole) {
  MadeUpRanks run(2);
  run.group("a", {0, 1});
  run.group("b", {0, 1});
  run.add(0, "a", "all_reduce", 1, false);
  run.add(1, "b", "all_reduce", 1, false);
  EXPECT_EQ(judge(run.records()).culprits, (std::vector<int>{0, 1}));
}

TEST(FlightVerdict, TellsWhatMembersCameWithWhenItDiffers) {
  MadeUpRanks run(2);
  run.group("tp.0", {0, 1});
  run.add(0, "tp.0", "all_reduce", 1, false);
  run.add(1, "tp.0", "all_gather", 1, false).out = {{16}};
  const FlightVerdict verdict = judge(run.records());
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].kind, FoundKind::differs);
  EXPECT_EQ(verdict.culprits, (std::vector<int>{0, 1}));
  EXPECT_TRUE(holds(to_text(verdict, run.records()),
                    "  rank 0: all_reduce [8] -> [8]\n  rank 1: all_gather [8] -> [16]\n"));

  MadeUpRanks sizes(2);
  sizes.group("tp.0", {0, 1});
  sizes.add(0, "tp.0", "all_reduce", 1, false);
  sizes.add(1, "tp.0", "all_reduce", 1, false).in = {{9}};
  EXPECT_EQ(judge(sizes.records()).findings.at(0).kind, FoundKind::differs);

  MadeUpRanks uneven(2);  // rows of experts: each rank sends a different number
  uneven.group("ep.0", {0, 1});
  uneven.add(0, "ep.0", "all_to_all", 1);
  uneven.add(1, "ep.0", "all_to_all", 1).in = {{9}};
  EXPECT_TRUE(judge(uneven.records()).findings.empty());
}

TEST(FlightVerdict, WhereAllCameTheTransportHangs) {
  MadeUpRanks run(2);
  run.group("tp.0", {0, 1});
  for (const int rank : {0, 1}) run.add(rank, "tp.0", "all_reduce", 1, false);
  const FlightVerdict verdict = judge(run.records());
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].kind, FoundKind::unfinished);
  EXPECT_TRUE(verdict.culprits.empty());
}

TEST(FlightVerdict, WhatWasStartedAheadHoldsNobodyUp) {
  MadeUpRanks run(2);
  run.group("fsdp.0", {0, 1});
  for (const int rank : {0, 1}) run.add(rank, "fsdp.0", "all_gather", 1, false).is_awaited = false;
  run.add(0, "fsdp.0", "all_gather", 2, false).is_awaited = false;
  const FlightVerdict verdict = judge(run.records());
  EXPECT_TRUE(verdict.findings.empty());
  EXPECT_TRUE(holds(to_text(verdict, run.records()), "no rank waits"));
}

TEST(FlightVerdict, AMessageThatWasNotSent) {
  MadeUpRanks run(2);
  run.group("pp.0 0>1", {0, 1});
  run.message(0, "pp.0 0>1", true, 1, false, false);  // in flight, like every message for a while
  run.message(1, "pp.0 0>1", false, 1, true);
  run.message(1, "pp.0 0>1", false, 2, false);
  const FlightVerdict verdict = judge(run.records());
  EXPECT_EQ(verdict.culprits, std::vector<int>{0});
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_TRUE(holds(to_text(verdict, run.records()),
                    "message number 2 of group 'pp.0 0>1' from rank 0 to rank 1\n"
                    "  rank 1 waited for 1:29; rank 0 did not arrive"));
}

TEST(FlightVerdict, ARankWithoutARecordHasNotCome) {
  MadeUpRanks run(3);
  run.group("fsdp.0", {0, 1, 2});
  for (const int rank : {0, 1}) run.add(rank, "fsdp.0", "all_gather", 2, false);
  run.lose(2);
  const FlightVerdict verdict = judge(run.records());
  EXPECT_EQ(verdict.unknown, std::vector<int>{2});
  EXPECT_EQ(verdict.culprits, std::vector<int>{2});
}

TEST(FlightVerdict, OlderEntriesThatOneRankHasForgottenAreNoAbsence) {
  MadeUpRanks run(2);
  run.group("fsdp.0", {0, 1});
  run.add(0, "fsdp.0", "all_gather", 1, false);  // of a handle that was dropped
  run.add(0, "fsdp.0", "all_gather", 40);
  run.add(1, "fsdp.0", "all_gather", 40);
  EXPECT_TRUE(judge(run.records()).culprits.empty());
}

TEST(FlightFile, ReadsWhatItHasWritten) {
  MadeUpRanks run(2);
  run.group("fsdp.0", {0, 1});
  run.group("pp.0 0>1", {0, 1});
  run.add(1, "fsdp.0", "all_gather", 1).in = {{4}};
  run.add(1, "fsdp.0", "reduce_scatter", 2, false);
  run.message(1, "pp.0 0>1", false, 3, false);
  run.message(1, "pp.0 0>1", true, 4, false, false);
  run.at(1).doing = "in step 3";
  run.at(1).num_forgotten = 12;
  const titan::testing::TestFolder folder;
  for (const FlightRecord& record : run.records())
    write_text_atomically(folder.path() / ("rank_" + std::to_string(record.rank)),
                          to_flight_file(record));
  write_text_atomically(folder.path() / "rank_1.old", "not one of them");
  const std::vector<FlightRecord> read = read_flight_folder(folder.path(), "rank_");
  ASSERT_EQ(read.size(), 2u);
  const FlightRecord &before = run.records()[1], &after = read[1];
  EXPECT_EQ(after.rank, 1);
  EXPECT_EQ(after.doing, "in step 3");
  EXPECT_EQ(after.num_forgotten, 12);
  EXPECT_EQ(after.written_ns, 100 * kSecond);
  EXPECT_EQ(after.groups.at("fsdp.0").ranks, (std::vector<int>{0, 1}));
  ASSERT_EQ(after.entries.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const FlightEntry &a = before.entries[i], &b = after.entries[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.group, b.group);
    EXPECT_EQ(a.operation, b.operation);
    EXPECT_EQ(a.sequence, b.sequence);
    EXPECT_EQ(a.is_message, b.is_message);
    EXPECT_EQ(a.from, b.from);
    EXPECT_EQ(a.to, b.to);
    EXPECT_EQ(a.in, b.in);
    EXPECT_EQ(a.is_done, b.is_done) << i;
    EXPECT_EQ(a.is_awaited, b.is_awaited) << i;
    EXPECT_EQ(a.started_ns, b.started_ns);
  }
}

TEST(FlightFile, SaysWhatIsWrongWithAFolder) {
  const titan::testing::TestFolder folder;
  EXPECT_TRUE(holds(error_of([&] { read_flight_folder(folder.path(), "rank_"); }).what(),
                    "there is no flight record rank_<rank> in '"));
  EXPECT_TRUE(holds(error_of([&] { read_flight_folder(folder.path() / "x", "rank_"); }).what(),
                    "cannot read the folder"));
  write_text_atomically(folder.path() / "rank_0", "damaged");
  const std::string said = error_of([&] { read_flight_folder(folder.path(), "rank_"); }).what();
  EXPECT_TRUE(holds(said, "it is not a flight record: the pickle "));
  EXPECT_TRUE(holds(said, "rank_0'"));
}

}  // namespace
}  // namespace titan::commands
