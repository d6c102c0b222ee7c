// Learning-rate schedule @FULL_NAME@. As generated, it falls linearly from 1 at the first step to `floor` at the last,
// and stays there.
// Select it with [lr_scheduler] name = "@FULL_NAME@".
#include <algorithm>

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  double floor = 0.1;  // factor at the last step
};

class @CLASS@ final : public titan::LrScheduler {
 public:
  @CLASS@(const @CLASS@Options& options, titan::LrSchedulerContext context)
      : options_(options), steps_(context.training_steps) {}

  double factor(int64_t step) const override {
    if (steps_ <= 1) return 1;
    const double done = static_cast<double>(step - 1) / static_cast<double>(steps_ - 1);
    return 1 - (1 - options_.floor) * std::min(done, 1.0);
  }

 private:
  @CLASS@Options options_;
  int64_t steps_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Falls linearly from 1 to a floor.")
      .option("floor", &@CLASS@Options::floor, "Factor at the last step").between(0, 1);
}
