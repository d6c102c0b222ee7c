// Registers the loss `cross_entropy`.
#include <titan/plugin.h>

#include "cross_entropy.h"

TITAN_PLUGIN(plugin) {
  using O = titan::losses::CrossEntropyOptions;
  plugin
      .add<titan::losses::CrossEntropy>(
          "cross_entropy", "Cross entropy with label smoothing, z-loss and a soft cap of logits.")
      .option("label_smoothing", &O::label_smoothing,
              "Share of the target that is spread over the vocabulary")
      .at_least(0)
      .less_than(1)
      .option("z_loss", &O::z_loss,
              "Coefficient of the square of the logits' logsumexp (PaLM: 1e-4)")
      .at_least(0)
      .option("logit_softcap", &O::logit_softcap,
              "c of c tanh(logits / c) (Gemma 2: 30); 0: none. Inference must apply the same cap")
      .at_least(0);
}
