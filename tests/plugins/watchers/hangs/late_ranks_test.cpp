// Which ranks are named when a rank waits: from made-up status files.
#include "plugins/watchers/hangs/late_ranks.h"

#include <gtest/gtest.h>

#include <titan/dist/grid.h>

namespace titan::hangs {
namespace {

/// Rank 0 of four ranks of FSDP.
dist::Mesh four_ranks() {
  return dist::Mesh(dist::Grid(dist::MeshShape{.dp_shard = 4}), 0,
                    [](const std::string&, const std::vector<int>& ranks) {
                      return dist::make_fake_backend(0, static_cast<int>(ranks.size()));
                    });
}

RankStatus status(int64_t rank, const std::string& doing, double time = 100) {
  RankStatus status{.rank = rank, .host = "host" + std::to_string(rank), .pid = 70 + rank};
  status.time = time;
  status.doing = doing;
  return status;
}

const std::string kArrived = "in step 3, in forward, waits in all_gather number 7 of group 'fsdp'";
const std::string kBefore = "in step 3, in forward, waits in all_gather number 6 of group 'fsdp'";
const std::string kBusy = "in step 3, in data loading, in no collective";

std::optional<dist::CommRecord> awaited(const std::string& operation = "all_gather") {
  return dist::CommRecord{.sequence = 7, .group = "fsdp", .operation = operation};
}

TEST(LateRanks, RankThatIsElsewhereIsNamedWithItsHost) {
  const dist::Mesh mesh = four_ranks();
  const RankStatuses statuses{
      {status(0, kArrived), status(1, kArrived), status(2, kBusy), status(3, kArrived)}};
  const LateRanks late = late_ranks(mesh, awaited(), statuses, 101);
  EXPECT_EQ(late.names, "rank 2 (host host2)");
  ASSERT_EQ(late.lines.size(), 1u);
  EXPECT_EQ(late.lines[0],
            "rank 2 (host host2, pid 72) was " + kBusy + ", by its status of 1 s ago");
}

TEST(LateRanks, SeveralAreListed) {
  const dist::Mesh mesh = four_ranks();
  const RankStatuses statuses{{status(1, kBefore), status(2, kBusy), status(3, kArrived)}};
  EXPECT_EQ(late_ranks(mesh, awaited(), statuses, 101).names, "ranks 1, 2");
}

TEST(LateRanks, RankWhoseStatusIsOldIsStoppedOrLostWhereverItWas) {
  const dist::Mesh mesh = four_ranks();
  const RankStatuses statuses{{status(1, kArrived, 60), status(2, kArrived), status(3, kArrived)}};
  const LateRanks late = late_ranks(mesh, awaited(), statuses, 101);
  EXPECT_EQ(late.names, "rank 1 (host host1)");
  EXPECT_TRUE(late.lines[0].ends_with(
      ", by its status of 41 s ago: its process or host is stopped or lost"))
      << late.lines[0];
}

TEST(LateRanks, OtherEndOfAMessageIsNamed) {
  const dist::Mesh mesh = four_ranks();
  const RankStatuses statuses{{status(1, kBusy), status(2, kBusy), status(3, kBusy)}};
  EXPECT_EQ(late_ranks(mesh, awaited("receive from 3"), statuses, 101).names,
            "rank 3 (host host3)");
}

TEST(LateRanks, NothingIsKnownWithoutStatusFiles) {
  const dist::Mesh mesh = four_ranks();
  EXPECT_EQ(late_ranks(mesh, awaited(), {}, 101).names, "ranks 1, 2, 3");
  EXPECT_EQ(late_ranks(mesh, {}, {}, 101).names, "");
}

TEST(LateRanks, RecordOfTheCollectiveThatIsWaitedForIsFound) {
  dist::Recorder recorder;
  recorder.start("fsdp", "all_gather", 8);
  const int64_t second = recorder.start("fsdp", "all_gather", 8);
  EXPECT_FALSE(awaited_collective(recorder));
  recorder.await(second);
  ASSERT_TRUE(awaited_collective(recorder));
  EXPECT_EQ(awaited_collective(recorder)->sequence, 2);
  recorder.finish(second);
  EXPECT_FALSE(awaited_collective(recorder));
}

}  // namespace
}  // namespace titan::hangs
