// Registers the parallelism maintainers/step_guard.
#include <titan/plugin.h>

#include "step_guard.h"

TITAN_PLUGIN(plugin) {
  using O = step_guard::StepGuardOptions;
  plugin
      .add<step_guard::StepGuard>("maintainers/step_guard",
                                  "Runs each step twice and repeats it if they differ.")
      .option("runs_twice", &O::runs_twice, "Compare each run of a step with a second one")
      .option("drill_share", &O::drill_share, "Share of the steps that are discarded once")
      .between(0, 1)
      .option("seed", &O::seed, "Which steps are drills");
}
