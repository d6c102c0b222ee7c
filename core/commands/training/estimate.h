// Determines the number of ranks of a job that is only estimated, and prints its estimate. Used by
// `titan estimate` and by `titan train` with [memory_estimation] enable.
#pragma once

#include <optional>

#include "core/config/resolve.h"
#include "core/estimate/estimate.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Whether the job sets [memory_estimation] enable.
bool asks_for_estimate(const JobSources& sources);

/// Sets comm.mode = "fake_backend", so that ranks are simulated as on GPUs, which this machine need
/// not have. Does nothing for a job with device.name = "cpu" or its own comm.mode.
void simulate_unless_on_cpus(JobSources& sources);

/// `asked`, else the product of the degrees. If data_parallel_shard_degree is -1: environment
/// variable NGPU, else the product of the other degrees.
int estimated_ranks(const JobSources& sources, std::optional<int> asked);

enum class EstimateForm { text, json };

/// Simulates the job and prints its memory, FLOPs and communication.
void print_estimate(const JobConfig& config, Registry& registry, EstimateForm form,
                    const std::optional<MachineSpeed>& speed);

}  // namespace titan::core
