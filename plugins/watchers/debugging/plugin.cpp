// Registers watcher:debugging.
#include <titan/plugin.h>

#include "debugging.h"

TITAN_PLUGIN(plugin) {
  using titan::debugging::Options;
  plugin
      .add<titan::debugging::Debugging>(
          "debugging", "Finds where bad values come from, and traces tensors for titan compare.")
      .option(
          "find_nan", &Options::find_nan,
          "Run a step whose loss or gradients are NaN or infinite once more, and name the first "
          "layer and tensor that went bad")
      .fed_by("debug.find_nan")
      .option("detect_anomaly", &Options::detect_anomaly,
              "Look at the gradients of every operation, and name the layer of the first that "
              "gives a NaN; slow")
      .fed_by("debug.detect_anomaly")
      .option("trace_tensors", &Options::trace_tensors,
              "Modules and weights by pattern: what goes in and comes out, and gradients, is "
              "written into job.dump_folder/tensor_trace for titan compare; slow")
      .fed_by("debug.trace_tensors")
      .option("trace_tensors_from", &Options::trace_tensors_from, "First step that is traced")
      .at_least(1)
      .fed_by("debug.trace_tensors_from")
      .option("trace_tensors_until", &Options::trace_tensors_until,
              "Last step that may be traced; unset: the run's last")
      .at_least(1)
      .fed_by("debug.trace_tensors_until")
      .option("trace_tensors_every", &Options::trace_tensors_every,
              "Of the steps from trace_tensors_from on every N-th is traced")
      .at_least(1)
      .fed_by("debug.trace_tensors_every");
}
