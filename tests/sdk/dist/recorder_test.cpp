// What the record of a run's communication contains for each operation.
#include <titan/dist/recorder.h>

#include <gtest/gtest.h>

namespace titan::dist {
namespace {

TEST(Recorder, CountsCollectivesByGroupAndMessagesByPeer) {
  Recorder recorder;
  const auto number = [&](const char* group, const char* operation) {
    return recorder.find(recorder.start(group, operation, 8)).sequence;
  };
  EXPECT_EQ(number("pp", "all_reduce"), 1);
  EXPECT_EQ(number("pp", "send to 1"), 1);
  EXPECT_EQ(number("pp", "send to 1"), 2);
  EXPECT_EQ(number("pp", "send to 2"), 1);
  EXPECT_EQ(number("pp", "receive from 1"), 1);
  EXPECT_EQ(number("pp", "broadcast from 0"), 2);  // all ranks take part
  EXPECT_EQ(number("cp", "send to 1"), 1);
  EXPECT_EQ(recorder.traffic().at({"pp", "send"}).calls, 3);
  EXPECT_EQ(recorder.total_bytes(), 7 * 8);
}

TEST(Recorder, ListsCollectivesInFlightOldestFirst) {
  Recorder recorder(/*capacity=*/3);
  const int64_t forgotten = recorder.start("fsdp", "all_gather", 8);
  const int64_t first = recorder.start("fsdp", "reduce_scatter", 8);
  const int64_t done = recorder.start("tp", "all_reduce", 8);
  recorder.start("pp", "send to 1", 8);  // the ring buffer is full: the oldest entry is gone
  recorder.finish(done);
  recorder.finish(forgotten);
  const std::vector<CommRecord> open = recorder.in_flight();
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].operation, "reduce_scatter");
  EXPECT_EQ(open[1].operation, "send to 1");
  recorder.finish(first);
  EXPECT_EQ(recorder.in_flight().size(), 1u);
}

TEST(Recorder, SaysWhatARankIsWorkingOn) {
  Recorder recorder;
  EXPECT_EQ(recorder.activity(), "");
  recorder.set_activity("forward of stage 2");
  EXPECT_EQ(recorder.activity(), "forward of stage 2");
}

}  // namespace
}  // namespace titan::dist
