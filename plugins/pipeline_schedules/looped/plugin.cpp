// Registers the pipeline schedules that place stages in a loop: rank p holds stages p, p + P, ...
#include <titan/plugin.h>

#include "gpipe.h"
#include "interleaved.h"
#include "looped_bfs.h"
#include "one_forward_one_backward.h"

using namespace titan::pipeline_schedules;

TITAN_PLUGIN(plugin) {
  plugin.add<GPipe>("GPipe", "All forwards, then all backwards.");
  plugin.add<OneForwardOneBackward>(
      "1F1B", "A short warmup, then one forward and one backward in turn: fewer activations.");
  plugin.add<Interleaved1F1B>("Interleaved1F1B",
                              "1F1B over several stages per rank: a smaller bubble.");
  plugin.add<LoopedBfs>("LoopedBFS",
                        "All microbatches through one stage of a rank, then the next.");
  plugin.add<InterleavedZeroBubble>(
      "InterleavedZeroBubble",
      "Interleaved1F1B with weight gradients in the bubble (ZB1P); several stages per rank.");
}
