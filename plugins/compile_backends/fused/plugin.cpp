// Registers compile_backend:fused.
#include <titan/plugin.h>

#include "fused.h"

TITAN_PLUGIN(plugin) {
  using O = titan::fused::FusedOptions;
  plugin
      .add<titan::fused::Fused>("fused",
                                "Layers in fewer passes over memory that keep less for "
                                "their backward.")
      .option("components", &O::components, "Which parts; the loss is fused in any case")
      .one_of({"model", "loss"})
      .fed_by("compile.components")
      .option("attention_inputs", &O::attention_inputs,
              "Queries, keys and values as one product, rotated where it lies")
      .option("feed_forward", &O::feed_forward,
              "Feed-forward layers as one operation, whose backward computes the gate's product "
              "again and works where its inputs lie")
      .option("residual_norm", &O::residual_norm,
              "The sum of a residual and its normalisation in one pass");
}
