// Tests of learning rate schedules.
#include <cmath>

#include <titan/lr_scheduler.h>

#include "kit/jobs.h"

namespace titan::conformance::lr_scheduler_kind {
namespace {

constexpr int64_t kSteps = 200;

std::unique_ptr<LrScheduler> schedule_of(TestContext& test, int64_t steps) {
  return test.make<LrScheduler>({steps});
}

void defined_everywhere(TestContext& test) {
  for (const int64_t steps : {int64_t{1}, int64_t{2}, int64_t{3}, kSteps, int64_t{1} << 40}) {
    const auto schedule = schedule_of(test, steps);
    for (const int64_t step : {int64_t{1}, int64_t{2}, steps / 2 + 1, steps, steps + 1}) {
      const double factor = schedule->factor(step);
      test.expect(std::isfinite(factor) && factor >= 0, "the factor of step ", step, " of ", steps,
                  " is ", factor);
    }
  }
  const auto schedule = schedule_of(test, kSteps);
  for (int64_t step = 1; step <= kSteps; ++step)
    test.expect(std::isfinite(schedule->factor(step)) && schedule->factor(step) >= 0,
                "the factor of step ", step, " of ", kSteps, " is ", schedule->factor(step));
}

void trains(TestContext& test) {
  const auto schedule = schedule_of(test, kSteps);
  double sum = 0;
  for (int64_t step = 1; step <= kSteps; ++step) sum += std::fabs(schedule->factor(step));
  test.expect(sum > 0, "the factor is 0 at all ", kSteps, " steps: nothing would be learnt");
}

void pure(TestContext& test) {
  const auto forward = schedule_of(test, kSteps), backward = schedule_of(test, kSteps);
  std::vector<double> factors;
  for (int64_t step = 1; step <= kSteps; ++step) factors.push_back(forward->factor(step));
  for (int64_t step = kSteps; step >= 1; --step) {
    const double again = backward->factor(step);
    test.expect(again == factors[static_cast<size_t>(step - 1)], "the factor of step ", step,
                " is ", factors[static_cast<size_t>(step - 1)], " in a run from step 1, and ",
                again, " without the steps before it");
  }
}

void resume(TestContext& test) {
  Job job = job_with(test, "through").saves().set("checkpoint.interval", 2);
  const JobRun through = job.run();
  Job halves = job.named("halves");
  halves.run();
  std::filesystem::remove_all(halves.folder() / "checkpoint/step-4");
  expect_same_bits(test, halves.run(), through, "after a resume from step 2");
}

}  // namespace
}  // namespace titan::conformance::lr_scheduler_kind

namespace titan::conformance {

std::vector<Test> lr_scheduler_tests() {
  using namespace lr_scheduler_kind;
  constexpr const char* kKind = "lr_scheduler";
  return {
      {kKind, "defined_everywhere",
       "The factor is finite and not negative at every step, in runs of 1 to 2^40 steps.",
       defined_everywhere},
      {kKind, "trains", "The factor is above 0 in at least one step of a run of 200 steps.",
       trains},
      {kKind, "pure",
       "The factor of a step is the same whichever steps were asked before, in this object or "
       "another.",
       pure},
      {kKind, "resume", "A run that resumes from step 2 equals a whole run bit for bit.", resume},
  };
}

}  // namespace titan::conformance
