// Registers the dataset `megatron`.
#include <titan/plugin.h>

#include "plugins/datasets/megatron/megatron_dataset.h"

using titan::datasets::MegatronDataset;

TITAN_PLUGIN(plugin) {
  plugin.add<MegatronDataset>("megatron",
                              "Token ids in pairs of <prefix>.bin and <prefix>.idx, by document.");
}
