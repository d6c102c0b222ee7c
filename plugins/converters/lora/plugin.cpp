// Registers the converter `lora`.
#include <titan/plugin.h>

#include "lora.h"

TITAN_PLUGIN(plugin) {
  using O = titan::lora::LoraOptions;
  plugin
      .add<titan::lora::Lora>("lora",
                              "Trains low-rank matrices that are added to frozen linear layers.")
      .option("rank", &O::rank, "Rank of the matrix that is added to a layer's weight")
      .at_least(1)
      .option("alpha", &O::alpha, "The added matrix is scaled by alpha / rank")
      .greater_than(0)
      .option("targets", &O::targets,
              "Linear layers to adapt: their names or parts of them, such as wq, "
              "feed_forward, experts, layers.0.attention.wq");
}
