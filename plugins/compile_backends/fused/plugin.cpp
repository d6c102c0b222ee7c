// Registers compile_backend:fused.
#include <titan/plugin.h>

#include "fused.h"

TITAN_PLUGIN(plugin) {
  using O = titan::fused::FusedOptions;
  plugin
      .add<titan::fused::Fused>("fused",
                                "Computes layers in fewer passes over memory and keeps less "
                                "for their backward.")
      .option("components", &O::components, "Parts to fuse; the loss is fused in any case")
      .one_of({"model", "loss"})
      .fed_by("compile.components")
      .option("attention_inputs", &O::attention_inputs,
              "Compute queries, keys and values as one product, with RoPE in place")
      .option("feed_forward", &O::feed_forward,
              "Compute feed-forward layers as one operation, whose backward recomputes the SwiGLU "
              "product and works in place")
      .option("residual_norm", &O::residual_norm,
              "Compute the sum of a residual and its normalisation in one pass");
}
