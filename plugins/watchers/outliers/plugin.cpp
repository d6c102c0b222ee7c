// Registers watcher:outliers.
#include <string>

#include <titan/plugin.h>

#include "outliers.h"

namespace titan::outliers {
namespace {

void check(const Options& o, const JobView&, RuleReport& report) {
  if (o.minimum > o.window)
    report.error("minimum",
                 "watcher.outliers.minimum = " + std::to_string(o.minimum) +
                     " is larger than watcher.outliers.window = " + std::to_string(o.window) +
                     ", so no step would ever be judged",
                 "lower minimum or raise window");
}

}  // namespace
}  // namespace titan::outliers

TITAN_PLUGIN(plugin) {
  using titan::outliers::Options;
  plugin
      .add<titan::outliers::Outliers>(
          "outliers",
          "Skips steps whose loss or gradient norm is far above those of earlier steps.")
      .option("window", &Options::window,
              "Committed steps whose losses and gradient norms give mean and sigma")
      .at_least(2)
      .option("minimum", &Options::minimum, "Committed steps before any step is judged")
      .at_least(2)
      .option("sigmas", &Options::sigmas,
              "Skip a step whose loss or norm is more than this many standard deviations above the "
              "mean; 0: no limit")
      .at_least(0)
      .option("times_largest", &Options::times_largest,
              "Skip a step whose loss or norm is at least this many times the greatest of the "
              "first `largest_of` steps (Megatron-LM: 10); 0: no limit")
      .at_least(0)
      .option("largest_of", &Options::largest_of, "First steps that `times_largest` looks at")
      .at_least(1)
      .option("skip_nonfinite", &Options::skip_nonfinite,
              "Skip a step whose loss or norm is NaN or infinite; otherwise it ends the run")
      .option("rerun", &Options::rerun,
              "Run an outlier once more, and say whether the second run gives the same bits")
      .option("most_in_row", &Options::most_in_row, "Skipped steps in a row; one more ends the run")
      .at_least(0)
      .option("name_rows", &Options::name_rows,
              "After a skipped step, run each of its rows forward and name those with the greatest "
              "losses; not with a pipeline")
      .check(titan::outliers::check);
}
