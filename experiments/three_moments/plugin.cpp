// Registers the optimizer maintainers/three_moments.
#include <titan/plugin.h>

#include "three_moments.h"

namespace {

using O = three_moments::ThreeMomentsOptions;

void check_betas(const O& options, const titan::JobView&, titan::RuleReport& report) {
  if (options.beta3 >= options.beta2) return;
  report.error("beta3",
               titan::detail::concat("beta3 = ", options.beta3, " is below beta2 = ", options.beta2,
                                     ": third powers need at least as many steps of averaging as squares"),
               "raise beta3");
}

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin
      .add<three_moments::ThreeMoments>("maintainers/three_moments",
                                        "Adam with a third moment against skewed gradients.")
      .option("lr", &O::lr, "Base learning rate").greater_than(0)
      .option("beta1", &O::beta1, "Decay of the first moment").at_least(0).less_than(1)
      .option("beta2", &O::beta2, "Decay of the second moment").at_least(0).less_than(1)
      .option("beta3", &O::beta3, "Decay of the third moment; at least beta2").at_least(0).less_than(1)
      .option("eps", &O::eps, "Added to the root of the second moment").greater_than(0)
      .option("skew", &O::skew, "Share of a step that skewed gradients subtract or add").between(0, 1)
      .option("weight_decay", &O::weight_decay, "Decoupled decay").at_least(0)
      .check(check_betas);
}
