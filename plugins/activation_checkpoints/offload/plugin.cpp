// Registers activation_checkpoint:offload.
#include <titan/plugin.h>

#include "offload.h"

TITAN_PLUGIN(plugin) {
  using O = titan::offload::OffloadOptions;
  plugin
      .add<titan::offload::Offload>(
          "offload", "Blocks keep their activations in host memory until their backward.")
      .option("min_bytes", &O::min_bytes, "Smaller pieces of memory stay on the device")
      .option("prefetch", &O::prefetch,
              "Bring the block before back while the backward of a block runs")
      .option("pin_memory", &O::pin_memory, "Copy to pinned host memory, beside the computation");
}
