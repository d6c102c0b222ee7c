// The peak FLOP/s of a run's device, for MFU. Used by the metrics and the history of a run.
#pragma once

#include <optional>

#include "core/config/schema/job_config.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// FLOP/s of one rank's device in the dtype that the layers compute in: [metrics] peak_flops, else
/// the device's own value. Unset if neither is known, as on CPUs.
std::optional<double> peak_flops(const Run& run, const JobConfig& config);

}  // namespace titan::core
