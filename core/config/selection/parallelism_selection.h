// Which parallelism plugins the degrees ask for. The table of names: axis tensor -> `tensor`, and
// so on. What the core's keys set of their options, their own declarations say (feeds.h).
#pragma once

#include <string>
#include <vector>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// One plugin of kind "parallelism" that this job needs.
struct ParallelismRequest {
  std::string name;
  std::string key;  ///< of the configuration, that names it
  SourceRange
      where;  ///< its value, or where it is left at its default, the degree that asks for it
};

/// In the order in which they are applied within a phase. `config` needs its sections only.
std::vector<ParallelismRequest> requested_parallelisms(const JobConfig& config,
                                                       const Layout& layout,
                                                       const GivenValues& given);

/// Whether the job trains on CPUs. A simulated rank stands for one of a machine that is not
/// here.
bool runs_on_cpu(const JobConfig& config);

/// The type that layers compute in, "float32" for what was left at its default on a CPU.
/// Changes the section and notes it when the default is not taken.
void settle_compute_dtype(JobConfig& config, const GivenValues& given, Diagnostics& diagnostics);

}  // namespace titan::core
