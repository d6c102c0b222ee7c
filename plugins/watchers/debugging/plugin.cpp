// Registers watcher:debugging.
#include <string>

#include <titan/plugin.h>

#include "debugging.h"

namespace titan::debugging {
namespace {

void check(const Options& o, const JobView& job, RuleReport& report) {
  if (o.find_nan && job.core("optimizer.early_step_in_backward") == Value(true))
    report.error("find_nan",
                 "debug.find_nan = true runs a bad step once more, but with "
                 "optimizer.early_step_in_backward = true weights change inside the backward and "
                 "no step can be run again",
                 "set debug.detect_anomaly = true instead, or switch off one of them");
  if (o.trace_tensors_until && *o.trace_tensors_until < o.trace_tensors_from)
    report.error(
        "trace_tensors_until",
        "debug.trace_tensors_until = " + std::to_string(*o.trace_tensors_until) +
            " is before debug.trace_tensors_from = " + std::to_string(o.trace_tensors_from),
        "make trace_tensors_until the larger one");
}

}  // namespace
}  // namespace titan::debugging

TITAN_PLUGIN(plugin) {
  using titan::debugging::Options;
  plugin
      .add<titan::debugging::Debugging>(
          "debugging", "Finds where bad values come from, and traces tensors for titan compare.")
      .option("find_nan", &Options::find_nan,
              "Repeat a step whose loss or gradients are NaN or infinite, and name the first layer "
              "and tensor with a bad value")
      .fed_by("debug.find_nan")
      .option("detect_anomaly", &Options::detect_anomaly,
              "Check the gradients of every operation and name the layer of the first NaN; slow")
      .fed_by("debug.detect_anomaly")
      .option("trace_tensors", &Options::trace_tensors,
              "Modules and weights, by pattern, whose inputs, outputs and gradients are written to "
              "job.dump_folder/tensor_trace for titan compare; slow")
      .fed_by("debug.trace_tensors")
      .option("trace_tensors_from", &Options::trace_tensors_from, "First traced step")
      .at_least(1)
      .fed_by("debug.trace_tensors_from")
      .option("trace_tensors_until", &Options::trace_tensors_until,
              "Last traced step; unset: the last step of the run")
      .at_least(1)
      .fed_by("debug.trace_tensors_until")
      .option("trace_tensors_every", &Options::trace_tensors_every,
              "Trace every N-th step from trace_tensors_from on")
      .at_least(1)
      .fed_by("debug.trace_tensors_every")
      .check(titan::debugging::check);
}
