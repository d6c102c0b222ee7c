// Registers activation_checkpoint:offload.
#include <titan/plugin.h>

#include "offload.h"

TITAN_PLUGIN(plugin) {
  using O = titan::offload::OffloadOptions;
  plugin
      .add<titan::offload::Offload>(
          "offload", "Blocks keep their activations in host memory until their backward.")
      .option("min_bytes", &O::min_bytes, "Smaller tensors stay on the device")
      .option(
          "prefetch", &O::prefetch,
          "Copy activations back before the backward needs them, within the memory that one block "
          "saves")
      .option("pin_memory", &O::pin_memory,
              "Copy to pinned host memory, overlapped with the computation");
}
