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
              "Bring activations back before the backward asks for them, as far as one block's "
              "memory reaches")
      .option("pin_memory", &O::pin_memory, "Copy to pinned host memory, beside the computation");
}
