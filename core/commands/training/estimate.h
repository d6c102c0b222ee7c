// How many ranks a job that is only estimated has, and printing its estimate. Used by `titan
// estimate` and by `titan train` with [memory_estimation] enable.
#pragma once

#include <optional>

#include "core/config/resolve.h"
#include "core/estimate/estimate.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Whether [memory_estimation] enable stands in the job.
bool asks_for_estimate(const JobSources& sources);

/// Has the ranks of `sources` simulated as on GPUs unless the job is written for CPUs: it is for a
/// machine that need not be this one.
void simulate_unless_on_cpus(JobSources& sources);

/// `asked`, else the product of the degrees; where data_parallel_shard_degree takes what is left
/// (-1), environment variable NGPU when it is set, else the product of the others.
int estimated_ranks(const JobSources& sources, std::optional<int> asked);

enum class EstimateForm { text, json };

/// Simulates the job and prints what it would take.
void print_estimate(const JobConfig& config, Registry& registry, EstimateForm form,
                    const std::optional<MachineSpeed>& speed);

}  // namespace titan::core
