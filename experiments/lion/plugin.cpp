// Registers the optimizer maintainers/lion.
#include <titan/plugin.h>

#include "lion.h"

TITAN_PLUGIN(plugin) {
  using lion::Lion;
  using O = lion::LionOptions;
  plugin
      .add<Lion>("maintainers/lion",
                 "Steps by the sign of an interpolated momentum (Chen et al., 2023).")
      .option("lr", &O::lr, "Base learning rate; a third to a tenth of AdamW's")
      .greater_than(0)
      .option("beta1", &O::beta1, "Share of the momentum in the direction of a step")
      .at_least(0)
      .less_than(1)
      .option("beta2", &O::beta2, "Decay of the momentum")
      .at_least(0)
      .less_than(1)
      .option("weight_decay", &O::weight_decay, "Decoupled decay; three to ten times AdamW's")
      .at_least(0);
}
