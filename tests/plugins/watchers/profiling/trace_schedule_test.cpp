// Which steps are recorded, compared with torch.profiler.schedule as torchtitan v0.2.2 uses it
// (wait = freq - warmup - active; the first step of a session has phase 0).
#include "plugins/watchers/profiling/trace_schedule.h"

#include <string>

#include <gtest/gtest.h>

namespace titan::profiling {
namespace {

/// One letter per step: . w R, and ! for the last recorded step.
std::string steps(const TraceSchedule& schedule, int64_t first, int64_t last) {
  std::string text;
  for (int64_t step = first; step <= last; ++step) switch (schedule.action(step)) {
      case TraceSchedule::Action::wait:
        text += '.';
        break;
      case TraceSchedule::Action::warm_up:
        text += 'w';
        break;
      case TraceSchedule::Action::record:
        text += schedule.is_last(step) ? '!' : 'R';
        break;
    }
  return text;
}

TEST(TraceSchedule, WaitsWarmsUpAndRecords) {
  EXPECT_EQ(steps({10, 3, 1, 1}, 1, 20), "......www!......www!");
  EXPECT_EQ(steps({5, 1, 2, 1}, 1, 10), "..wR!..wR!");
  EXPECT_EQ(steps({1, 0, 1, 1}, 1, 3), "!!!");
}

TEST(TraceSchedule, BeginsAResumedSessionWithPhaseZero) {
  EXPECT_EQ(steps({10, 3, 1, 10}, 10, 20), ".......www!") << "step 10 is not recorded";
  EXPECT_EQ(steps({10, 3, 1, 8}, 8, 12), ".w!..");
  EXPECT_EQ(steps({2, 1, 1, 4}, 4, 7), "ww!w") << "step 4 warms up";
}

}  // namespace
}  // namespace titan::profiling
