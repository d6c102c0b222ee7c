// How a rank's time is divided into phases, compared with the test's own clock.
#include <titan/step_phase.h>

#include <chrono>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>
#include <titan/dist/recorder.h>

namespace titan {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Work that takes at least `seconds`.
void spend(double seconds) {
  const double begin = now();
  while (now() - begin < seconds) {
  }
}

double of(const dist::Recorder& recorder, StepPhase phase) {
  return recorder.clock().seconds()[static_cast<size_t>(phase)];
}

TEST(StepClock, AddsUpToTheTimeThatPassed) {
  const double before = now();
  dist::Recorder recorder;
  const double made = now();
  {
    const PhaseScope forward(recorder, StepPhase::forward);
    const WaitScope waits(recorder);
  }
  const double least = now() - made;
  const StepClock::Seconds seconds = recorder.clock().seconds();
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  EXPECT_GE(sum, least);
  EXPECT_LE(sum, now() - before);
}

TEST(StepClock, CountsEachMomentForTheInnermostScope) {
  dist::Recorder recorder;
  {
    const PhaseScope backward(recorder, StepPhase::backward);
    spend(0.01);
    EXPECT_EQ(recorder.clock().current(), StepPhase::backward);
    const double until = of(recorder, StepPhase::backward);
    EXPECT_GE(until, 0.01);
    {
      const WaitScope waits(recorder);
      const WaitScope another(recorder);
      spend(0.005);
      EXPECT_EQ(recorder.clock().current(), StepPhase::communication);
    }
    EXPECT_GE(of(recorder, StepPhase::communication), 0.005);
    EXPECT_LT(of(recorder, StepPhase::backward) - until, 0.005);
    EXPECT_EQ(recorder.clock().current(), StepPhase::backward);
  }
  EXPECT_EQ(recorder.clock().current(), StepPhase::other);
}

TEST(StepClock, SomePhasesCountWhole) {
  for (const StepPhase whole : {StepPhase::checkpoint, StepPhase::validation, StepPhase::replicas}) {
    dist::Recorder recorder;
    const PhaseScope scope(recorder, whole);
    {
      const PhaseScope forward(recorder, StepPhase::forward);
      const WaitScope waits(recorder);
      spend(0.005);
    }
    EXPECT_EQ(of(recorder, StepPhase::forward), 0);
    EXPECT_EQ(of(recorder, StepPhase::communication), 0);
    EXPECT_GE(of(recorder, whole), 0.005);
  }
}

TEST(PhaseScope, ALabelIsWhatTheRankWorksOnAndASpan) {
  dist::Recorder recorder;
  recorder.clock().keep_spans(true);
  {
    const PhaseScope outer(recorder, StepPhase::validation, "validation");
    {
      const PhaseScope inner(recorder, StepPhase::forward, "forward of stage 2");
      EXPECT_EQ(recorder.activity(), "forward of stage 2");
    }
    EXPECT_EQ(recorder.activity(), "validation");
  }
  EXPECT_EQ(recorder.activity(), "");
  const std::vector<PhaseSpan> spans = recorder.clock().take_spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "forward of stage 2");
  EXPECT_EQ(spans[1].phase, StepPhase::validation);
  EXPECT_LE(spans[1].begin, spans[0].begin);
  EXPECT_LE(spans[0].end, spans[1].end);
  EXPECT_TRUE(recorder.clock().take_spans().empty());
}

TEST(PhaseScope, ASpanKnowsHowLongItWaited) {
  dist::Recorder recorder;
  recorder.clock().keep_spans(true);
  {
    const PhaseScope forward(recorder, StepPhase::forward, "forward");
    spend(0.002);
    const WaitScope waits(recorder);
    spend(0.004);
  }
  const PhaseSpan span = recorder.clock().take_spans().at(0);
  EXPECT_GE(span.waited, 0.004);
  EXPECT_GE(span.end - span.begin - span.waited, 0.002);
}

TEST(PhaseScope, AnErrorLeavesWhatTheRankWorkedOn) {
  dist::Recorder recorder;
  try {
    const PhaseScope forward(recorder, StepPhase::forward, "forward of stage 2");
    throw std::runtime_error("no");
  } catch (const std::exception&) {
  }
  EXPECT_EQ(recorder.activity(), "forward of stage 2");
  EXPECT_EQ(recorder.clock().current(), StepPhase::other);
}

}  // namespace
}  // namespace titan
