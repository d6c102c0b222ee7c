// Registers parallelism:tensor.
#include <titan/plugin.h>

#include "tensor_parallel.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::tensor_parallel::TensorParallelOptions;
  plugin
      .add<titan::tensor_parallel::TensorParallel>(
          "tensor", "Cuts weights within layers, the sequence between them and the loss.")
      .option("sequence_parallel", &Options::sequence_parallel,
              "Each rank holds its part of the sequence between attention and feed-forward; false: "
              "the whole sequence")
      .option("loss_parallel", &Options::loss_parallel,
              "Compute the loss from logits that stay cut over the vocabulary; false: gather them")
      .fed_by("parallelism.disable_loss_parallel",
              [](const titan::Value& core, const titan::JobView&) {
                return titan::Value(!core.as_boolean());
              })
      .option(
          "async", &Options::async,
          "Cut gathers and scatters into pieces and overlap their transfer with matrix products")
      .fed_by("parallelism.enable_async_tensor_parallel");
}
