// Registers watcher:replay.
#include <titan/plugin.h>

#include "replay.h"

namespace titan::replay {
namespace {

void check(const Options& o, const JobView& job, RuleReport& report) {
  if (o.exchange && job.core("parallelism.expert_parallel_degree") != Value(1))
    report.error(
        "exchange",
        "watcher.replay.exchange = true lets ranks run the rows of others, but with expert "
        "parallelism the rows of all ranks meet in each expert, in another order",
        "set exchange = false");
  if (job.core("debug.deterministic") != Value(true))
    report.error("debug.deterministic",
                 "watcher 'replay' compares the bits of two runs of a step, but with "
                 "debug.deterministic = false kernels may give other bits each time",
                 "set debug.deterministic = true, or leave out watcher 'replay'");
  if (job.core("debug.deterministic_warn_only") == Value(true))
    report.error(
        "debug.deterministic_warn_only",
        "watcher 'replay' compares the bits of two runs of a step, but with "
        "debug.deterministic_warn_only = true kernels that are not deterministic only warn",
        "set debug.deterministic_warn_only = false, or leave out watcher 'replay'");
}

}  // namespace
}  // namespace titan::replay

TITAN_PLUGIN(plugin) {
  using titan::replay::Options;
  plugin
      .add<titan::replay::Replay>(
          "replay",
          "Runs some steps twice and compares the bits, to find hardware that computes "
          "wrong results.")
      .option("interval", &Options::interval, "Steps between replays")
      .at_least(1)
      .option("lasting", &Options::lasting,
              "Replays of one rank that differ before its fault counts as lasting")
      .at_least(1)
      .option("attempts", &Options::attempts,
              "Attempts of a step whose replays differ; after the last one the run ends")
      .between(1, 50)
      .option(
          "exchange", &Options::exchange,
          "Each replay also runs the microbatches of the next data-parallel rank, which finds a "
          "device that computes the same wrong bits each time")
      .option(
          "end", &Options::end,
          "Once a rank has a lasting fault, save a checkpoint and end the run with exit code 17")
      .option("compare_weights_every", &Options::compare_weights_every,
              "Steps between comparisons of the weights that several ranks hold; 0: never")
      .at_least(0)
      .check(titan::replay::check);
}
