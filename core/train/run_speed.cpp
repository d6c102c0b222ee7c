#include "core/train/run_speed.h"

#include "core/train/assembly/run_dtypes.h"

namespace titan::core {

std::optional<double> peak_flops(const Run& run, const JobConfig& config) {
  if (config.metrics.peak_flops) return config.metrics.peak_flops;
  return run.device->peak_flops(compute_dtype(config));
}

}  // namespace titan::core
