#include "fsdp.h"

#include <titan/local_gradients.h>

#include "sharded_part.h"

namespace titan::fsdp {
namespace {

at::ScalarType resolve(Dtype dtype, at::ScalarType stored) {
  switch (dtype) {
    case Dtype::float16:
      return at::kHalf;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
    case Dtype::as_stored:
      break;
  }
  return stored;
}

}  // namespace

void Fsdp::apply(ModelPart& part, const TransformContext& context) {
  const at::ScalarType stored = context.parameter_dtype;
  const Settings settings{.reshard = options_.reshard_after_forward,
                          .sum_each_microbatch = options_.sum_each_microbatch,
                          .cpu_offload = options_.cpu_offload,
                          .stored_dtype = stored,
                          .param_dtype = resolve(options_.param_dtype, stored),
                          .reduce_dtype = resolve(options_.reduce_dtype, stored),
                          .device = context.device.device(),
                          .runtime = &context.device,
                          .mesh = context.mesh};
  if (settings.change_nothing())
    reducer_ = std::make_shared<LocalGradients>(part.parameters());
  else
    reducer_ = ShardedPart::make(part, settings);
}

}  // namespace titan::fsdp
