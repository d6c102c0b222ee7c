// The history of memory: the allocations at the peak, and its snapshot.
// tests/end_to_end/profiling_test.py opens snapshots of runs with PyTorch's own tools.
#include "plugins/watchers/profiling/memory_log.h"

#include <gtest/gtest.h>

#include "plugins/watchers/profiling/memory_snapshot.h"
#include "plugins/watchers/profiling/memory_table.h"

namespace titan::profiling {
namespace {

class MemoryLogTest : public ::testing::Test {
 protected:
  MemoryLogTest() { before_ = MemoryLog::enter(MemoryLog::kOutside); }
  ~MemoryLogTest() override { MemoryLog::enter(before_); }

  int64_t at_peak(const std::string& layer, MemoryUse use) const {
    const MemoryPeakReport peak = log_.peak();
    const auto part = peak.parts.find({layer, use});
    return part == peak.parts.end() ? 0 : part->second;
  }
  void expect_sums() const {
    int64_t sum = 0;
    for (const auto& [key, bytes] : log_.peak().parts) sum += bytes;
    EXPECT_EQ(sum, log_.peak().bytes);
  }
  MemoryLog log_{100};
  const int32_t block_ = log_.add_place(
      {.layer = "layers.0", .modules = {"layers.0.a", "layers.0"}, .pass = "forward"});
  int32_t before_ = 0;
};

TEST_F(MemoryLogTest, KnowsTheHighestMoment) {
  log_.taken(1, 100);
  log_.taken(2, 50);
  log_.given_back(1);
  log_.taken(3, 60);
  EXPECT_EQ(log_.peak().bytes, 150);
  EXPECT_EQ(at_peak("", MemoryUse::temporary), 150);
  log_.taken(4, 45);
  EXPECT_EQ(log_.peak().bytes, 155);
  expect_sums();
  log_.given_back(77);  // allocated before the log started
  log_.reset_peak();
  EXPECT_EQ(log_.peak().bytes, 155);
  log_.given_back(4);
  log_.reset_peak();
  EXPECT_EQ(log_.peak().bytes, 110);
  expect_sums();
}

TEST_F(MemoryLogTest, CorrectsAMomentThatHasPassed) {
  log_.taken(1, 10);
  log_.begin_forward();
  MemoryLog::enter(block_);
  log_.taken(2, 20);
  log_.taken(3, 40);
  log_.given_back(3);
  log_.end_forward();
  MemoryLog::enter(MemoryLog::kOutside);
  log_.relabel(1, MemoryUse::parameters, block_);
  EXPECT_EQ(log_.peak().bytes, 70);
  EXPECT_EQ(log_.peak().layer, "layers.0");
  EXPECT_EQ(at_peak("layers.0", MemoryUse::parameters), 10);
  EXPECT_EQ(at_peak("layers.0", MemoryUse::activations), 20);
  EXPECT_EQ(at_peak("layers.0", MemoryUse::temporary), 40);
  expect_sums();
  const std::string table = memory_table(log_.peak(), {"layers.0"});
  EXPECT_NE(table.find("70 bytes at the peak, in layers.0"), std::string::npos) << table;
}

TEST_F(MemoryLogTest, ScopesSayWhatMemoryIsFor) {
  {
    const MemoryUseScope use(MemoryUse::communication);
    log_.taken(1, 10);
  }
  log_.begin_forward();
  {
    const MemoryUseScope use(MemoryUse::communication);
    log_.taken(2, 5);
  }
  log_.end_forward();
  EXPECT_EQ(at_peak("", MemoryUse::communication), 15);
}

TEST_F(MemoryLogTest, KeepsTheLastEntries) {
  for (uint64_t i = 1; i <= 150; ++i) {
    log_.taken(i, 8);
    if (i > 10) log_.given_back(i);
  }
  const MemoryHistoryCopy history = log_.copy();
  EXPECT_EQ(history.live.size(), 10u) << "blocks whose events are gone are still listed";
  const std::vector<SnapshotEntry> entries = snapshot_entries(history, 100);
  ASSERT_EQ(entries.size(), 100u);
  EXPECT_STREQ(entries.back().action, "free_completed");
  EXPECT_EQ(entries.back().event->address, 150u);
  EXPECT_LE(entries.front().event->time_us, entries.back().event->time_us);
}

TEST_F(MemoryLogTest, RemembersThatMemoryRanOut) {
  EXPECT_FALSE(log_.was_refused());
  log_.refused(1000);
  EXPECT_TRUE(log_.was_refused());
  const MemoryHistoryCopy history = log_.copy();
  EXPECT_STREQ(snapshot_entries(history, 100).back().action, "oom");
}

TEST_F(MemoryLogTest, TellsEventsWhatIsKnownLater) {
  log_.taken(1, 8);
  log_.relabel(1, MemoryUse::gradients, block_);
  EXPECT_EQ(log_.copy().events.front().use, MemoryUse::gradients);
  EXPECT_EQ(log_.copy().live.front().place, block_);
  for (uint64_t i = 2; i <= 101; ++i) log_.taken(i, 8);  // its event is overwritten
  log_.relabel(1, MemoryUse::parameters, block_);
  const MemoryHistoryCopy history = log_.copy();
  for (const MemoryEvent& event : history.events)
    EXPECT_EQ(event.use, MemoryUse::temporary) << event.address;
}

}  // namespace
}  // namespace titan::profiling
