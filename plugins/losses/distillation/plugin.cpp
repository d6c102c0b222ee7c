// Registers the loss `distillation`.
#include <titan/plugin.h>

#include "distillation.h"

TITAN_PLUGIN(plugin) {
  using O = titan::losses::DistillationOptions;
  using titan::losses::Divergence;
  plugin
      .add<titan::losses::Distillation>("distillation",
                                        "Divergence from a teacher's ([reference]) "
                                        "distribution over the next token.")
      .option("temperature", &O::temperature,
              "Of both distributions; the loss is scaled by its square")
      .greater_than(0)
      .option("divergence", &O::divergence,
              "forward: KL(teacher || student), reverse: KL(student || teacher)",
              {{"forward", Divergence::forward}, {"reverse", Divergence::reverse}})
      .option("alpha", &O::alpha, "Weight of the cross entropy with the data's next token")
      .between(0, 1);
}
