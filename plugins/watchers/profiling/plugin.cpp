// Registers watcher:profiling.
#include <string>

#include <titan/plugin.h>

#include "profiling.h"

namespace titan::profiling {
namespace {

void check(const Options& o, const JobView&, RuleReport& report) {
  if (o.enable_profiling && o.profile_freq - o.profiler_warmup < o.profiler_active)
    report.error("profile_freq", "profiling.profile_freq = " + std::to_string(o.profile_freq) +
                                     " is shorter than profiler_warmup + profiler_active = " +
                                     std::to_string(o.profiler_warmup) + " + " +
                                     std::to_string(o.profiler_active));
}

}  // namespace
}  // namespace titan::profiling

TITAN_PLUGIN(plugin) {
  using titan::profiling::Options;
  plugin
      .add<titan::profiling::Profiling>("profiling",
                                        "Records traces of steps and snapshots of memory.")
      .option("enable_profiling", &Options::enable_profiling, "Write Chrome traces")
      .fed_by("profiling.enable_profiling")
      .option("save_traces_folder", &Options::save_traces_folder,
              "Trace folder under job.dump_folder")
      .fed_by("profiling.save_traces_folder")
      .option("profile_freq", &Options::profile_freq, "Steps between traces")
      .at_least(1)
      .fed_by("profiling.profile_freq")
      .option("profiler_active", &Options::profiler_active, "Recorded steps of each cycle")
      .at_least(1)
      .fed_by("profiling.profiler_active")
      .option("profiler_warmup", &Options::profiler_warmup, "Warm-up steps of each cycle")
      .at_least(0)
      .fed_by("profiling.profiler_warmup")
      .option("compress_traces", &Options::compress_traces,
              "Compress traces with gzip (rank<R>_trace.json.gz)")
      .fed_by("profiling.compress_traces")
      .option("enable_memory_snapshot", &Options::enable_memory_snapshot,
              "Dump the allocator's history every profile_freq steps and when memory runs out")
      .fed_by("profiling.enable_memory_snapshot")
      .option("save_memory_snapshot_folder", &Options::save_memory_snapshot_folder,
              "Snapshot folder under job.dump_folder")
      .fed_by("profiling.save_memory_snapshot_folder")
      .check(titan::profiling::check);
}
