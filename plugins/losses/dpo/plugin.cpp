// Registers the loss `dpo`.
#include <titan/plugin.h>

#include "dpo.h"

TITAN_PLUGIN(plugin) {
  using O = titan::losses::DpoOptions;
  using titan::losses::DpoVariant;
  plugin
      .add<titan::losses::Dpo>("dpo",
                               "Direct preference optimisation of pairs of answers, against a "
                               "reference model ([reference]).")
      .option("beta", &O::beta, "Strength of the tie to the reference model")
      .greater_than(0)
      .option("variant", &O::variant, "Loss of a pair, named as in TRL's loss_type",
              {{"sigmoid", DpoVariant::sigmoid},
               {"ipo", DpoVariant::ipo},
               {"hinge", DpoVariant::hinge}})
      .option("label_smoothing", &O::label_smoothing,
              "Probability that chosen and rejected are swapped; for variant \"sigmoid\" only")
      .at_least(0)
      .less_than(0.5)
      .option("rpo_alpha", &O::rpo_alpha,
              "Weight of the chosen answer's negative log-likelihood per token")
      .at_least(0)
      .option("reference_free", &O::reference_free,
              "Compare with a model that finds all answers equally likely; needs no [reference]");
}
