// Registers parallelism:fsdp.
#include <titan/plugin.h>

#include "fsdp.h"

namespace titan::fsdp {
namespace {

/// float64 is for proofs: it overrides mixed precision.
Value unless_stored_in_double(const Value& core, const JobView& job) {
  return job.core("training.dtype") == Value("float64") ? Value("as_stored") : core;
}

void declare_options(ComponentBuilder<Fsdp>& fsdp) {
  using O = FsdpOptions;
  const EnumNames<Dtype> dtypes = {{"as_stored", Dtype::as_stored},
                                   {"float16", Dtype::float16},
                                   {"bfloat16", Dtype::bfloat16},
                                   {"float32", Dtype::float32},
                                   {"float64", Dtype::float64}};
  fsdp.option(
          "reshard_after_forward", &O::reshard_after_forward,
          "Free whole parameters between forward and backward: 'default' for all units except the "
          "last, 'always' for all, 'never' for none",
          {{"default", Reshard::all_but_last},
           {"always", Reshard::always},
           {"never", Reshard::never}})
      .fed_by("parallelism.fsdp_reshard_after_forward",
              [](const Value& core, const JobView& job) {  // a pipeline soon uses a layer again
                return core == Value("default") && job.ranks("pp") > 1 ? Value("never") : core;
              })
      .option("param_dtype", &O::param_dtype,
              "Dtype of gathered parameters and of the computation; 'as_stored' = training.dtype",
              dtypes)
      .fed_by("training.mixed_precision_param", unless_stored_in_double)
      .option("reduce_dtype", &O::reduce_dtype,
              "Dtype of sums of gradients over ranks; 'as_stored' = training.dtype", dtypes)
      .fed_by("training.mixed_precision_reduce", unless_stored_in_double)
      .option("cpu_offload", &O::cpu_offload,
              "Keep shards, reduced gradients and optimizer states in host memory")
      .fed_by("training.enable_cpu_offload")
      .option("sum_each_microbatch", &O::sum_each_microbatch,
              "Reduce gradients after every microbatch, which takes less memory and more traffic, "
              "instead of "
              "keeping whole gradients until the last one");
}

}  // namespace
}  // namespace titan::fsdp

TITAN_PLUGIN(plugin) {
  plugin
      .add<titan::fsdp::Fsdp>("fsdp",
                              "Shards parameters, gradients and optimizer state over ranks.")
      .options(titan::fsdp::declare_options);
}
