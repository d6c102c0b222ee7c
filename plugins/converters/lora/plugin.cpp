// The door of the converter lora: its options.
#include <titan/plugin.h>

#include "lora.h"

TITAN_PLUGIN(plugin) {
  using O = titan::lora::LoraOptions;
  plugin.add<titan::lora::Lora>("lora", "Trains low-rank matrices beside frozen linear layers.")
      .option("rank", &O::rank, "Of the matrix that is added to a layer's weight")
      .at_least(1)
      .option("alpha", &O::alpha, "The added matrix counts alpha / rank times")
      .greater_than(0)
      .option("targets", &O::targets,
              "Linear layers that are adapted: their names, or parts of these such as wq, "
              "feed_forward, experts, layers.0.attention.wq");
}
