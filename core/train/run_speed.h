// What a run could reach at most, for its MFU. Used by the metrics and the history of a run.
#pragma once

#include <optional>

#include "core/config/schema/job_config.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// FLOP/s of one rank's device in the type that the layers compute in: [metrics] peak_flops, else
/// what the device knows of itself. None where nobody knows, as on CPUs.
std::optional<double> peak_flops(const Run& run, const JobConfig& config);

}  // namespace titan::core
