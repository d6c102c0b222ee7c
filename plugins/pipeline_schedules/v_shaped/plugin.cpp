// Registers the pipeline schedules that place two stages per rank as a V: rank p holds stages p and
// 2P - 1 - p.
#include <titan/plugin.h>

#include "dual_pipe_v.h"
#include "zbv_zero_bubble.h"

using namespace titan::pipeline_schedules;

TITAN_PLUGIN(plugin) {
  plugin.add<ZbvZeroBubble>(
      "ZBVZeroBubble",
      "No bubble when forward, input gradient and weight gradient take the same time.");
  plugin.add<DualPipeV>("DualPipeV",
                        "Forwards and backwards in pairs that hide each other's communication.");
}
