// Learning-rate schedules with one defect each, named after the conformance test that must find it;
// also the defects of the tests of every kind, because a schedule costs least. `right` has none,
// `empty` does nothing.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include <titan/error.h>
#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

namespace {

enum class Fault {
  none,
  defined_everywhere,
  trains,
  pure,
  pure_other,
  resume,
  help,
  defaults,
  limits,
  same_twice
};

struct Options {
  double floor = 0.1;  // factor at the last step
};

int64_t nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_nsec;
}

template <Fault fault>
class Falling final : public titan::LrScheduler {
 public:
  Falling(const Options& options, titan::LrSchedulerContext context)
      : options_(options), steps_(context.training_steps) {
    TITAN_CHECK(fault != Fault::defaults || options.floor != 0.1, config,
                "a floor of 0.1 is not supported");
    if (fault == Fault::limits && options.floor >= 1)
      throw std::range_error("vector::_M_range_check");
  }

  double factor(int64_t step) const override {
    if (fault == Fault::trains)
      return static_cast<double>(std::max<int64_t>(steps_ - step, 0) / steps_);  // of integers
    if (fault == Fault::pure) step = latest_ = std::max(latest_, step);
    if (fault == Fault::pure_other) step = of_all_ = std::max(of_all_, step);
    if (fault != Fault::defined_everywhere && steps_ <= 1) return 1;
    const double done = static_cast<double>(step - 1) / static_cast<double>(steps_ - 1);
    const double factor = 1 - (1 - options_.floor) * std::min(done, 1.0);
    return fault == Fault::resume ? factor * of_process_ : factor;
  }

 private:
  static inline int64_t of_all_ = 0;
  static inline const double of_process_ = 1 - static_cast<double>(nanoseconds() % 1000) * 1e-4;
  Options options_;
  int64_t steps_;
  mutable int64_t latest_ = 0;
};

class Empty final : public titan::LrScheduler {
 public:
  explicit Empty(titan::LrSchedulerContext) {}
  double factor(int64_t) const override { return 0; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  const auto declare = [](auto& of) {
    of.option("floor", &Options::floor, "Factor at the last step").between(0, 1);
  };
  plugin.add<Falling<Fault::none>>("wrong/right", "Falls linearly from 1 to a floor.")
      .options(declare);
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin
      .add<Falling<Fault::defined_everywhere>>("wrong/defined_everywhere",
                                               "Divides by 0 in a run of one step.")
      .options(declare);
  plugin.add<Falling<Fault::trains>>("wrong/trains", "Divides integers.").options(declare);
  plugin.add<Falling<Fault::pure>>("wrong/pure", "Remembers the latest step.").options(declare);
  plugin
      .add<Falling<Fault::pure_other>>("wrong/pure.other",
                                       "Remembers the latest step of all objects.")
      .options(declare);
  plugin.add<Falling<Fault::resume>>("wrong/resume", "Draws a factor per process.")
      .options(declare);
  plugin.add<Falling<Fault::help>>("wrong/help", "Falls linearly from 1 to a floor.")
      .option("floor", &Options::floor, "")
      .between(0, 1);
  plugin.add<Falling<Fault::defaults>>("wrong/defaults", "Refuses its defaults.").options(declare);
  plugin.add<Falling<Fault::limits>>("wrong/limits", "Throws an exception of its own at a limit.")
      .options(declare);
  auto same_twice =
      plugin.add<Falling<Fault::same_twice>>("wrong/same_twice", "Declares limits by the clock.");
  same_twice.option("floor", &Options::floor, "Factor at the last step")
      .between(0, 1 + static_cast<double>(nanoseconds()) * 1e-9);
}
