#include "core/train/assembly/run_dtypes.h"

#include "core/runtime/tensors/dtypes.h"

namespace titan::core {

at::ScalarType parameter_dtype(const JobConfig& config) {
  return scalar_type(config.training.dtype);
}

at::ScalarType compute_dtype(const JobConfig& config) {
  const bool as_stored = config.training.dtype == Dtype::float64;
  return as_stored ? at::kDouble : scalar_type(config.training.mixed_precision_param);
}

at::ScalarType reduce_dtype(const JobConfig& config) {
  const bool as_stored = config.training.dtype == Dtype::float64;
  return as_stored ? at::kDouble : scalar_type(config.training.mixed_precision_reduce);
}

}  // namespace titan::core
