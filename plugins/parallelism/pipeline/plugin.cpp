// Registers parallelism:pipeline.
#include <titan/plugin.h>

#include "pipeline.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::pipeline::PipelineOptions;
  plugin
      .add<titan::pipeline::Pipeline>(
          "pipeline",
          "Splits the layers over ranks and runs microbatches through them by a schedule.")
      .option("microbatch_size", &Options::microbatch_size, "Sequences of one microbatch")
      .at_least(1)
      .fed_by("parallelism.pipeline_parallel_microbatch_size")
      .option("modules_per_stage", &Options::modules_per_stage,
              "Explicit split: one list of layer names for each stage")
      .fed_by("parallelism.module_fqns_per_model_part")
      .option("first_stage_less_layers", &Options::first_stage_less_layers,
              "Weight of the model's first layer, in layers")
      .at_least(0)
      .fed_by("parallelism.pipeline_parallel_first_stage_less_layers")
      .option("last_stage_less_layers", &Options::last_stage_less_layers,
              "Weight of the model's last layer, in layers")
      .at_least(0)
      .fed_by("parallelism.pipeline_parallel_last_stage_less_layers");
}
