// Registers the pipeline schedules that place two stages per rank as a V: rank p holds stages p and
// 2P - 1 - p.
#include <titan/plugin.h>

#include "dual_pipe_v.h"
#include "zbv_zero_bubble.h"

using namespace titan::pipeline_schedules;

struct NoOptions {};

TITAN_PLUGIN(plugin) {
  plugin.add<ZbvZeroBubble>(
      "ZBVZeroBubble",
      "No bubble when forward, input gradient and weight gradient take the same time.");
  plugin
      .add<DualPipeV>(
          "DualPipeV",
          "Forwards and backwards in pairs, each overlapping with the other's communication.")
      .check([](const NoOptions&, const titan::JobView& job, titan::RuleReport& report) {
        if (job.core("parallelism.expert_parallel_degree").as_integer() > 1 &&
            job.core("parallelism.pipeline_parallel_expert_parallel_overlap").as_boolean() &&
            job.core("activation_checkpoint.mode") != titan::Value("none"))
          report.error("activation_checkpoint.mode",
                       "DualPipeV overlaps expert communication only with "
                       "activation_checkpoint.mode = \"none\"",
                       "or set pipeline_parallel_expert_parallel_overlap = false");
      });
}
