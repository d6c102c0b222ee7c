// Selects the parallelism plugins that the degrees require. Used by resolve.cpp. The plugins' own
// declarations say which of their options follow from keys of the core (feeds.h).
#pragma once

#include <string>
#include <vector>

#include "core/config/schema/job_config.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// One plugin of kind "parallelism" that this job needs.
struct ParallelismRequest {
  std::string name;
  std::string key;  ///< the configuration key that names it
  SourceRange
      where;  ///< the key's value or, if that is the default, the degree that requires the plugin
};

/// In the order in which they are applied within a phase. Reads only the sections of `config`.
std::vector<ParallelismRequest> requested_parallelisms(const JobConfig& config,
                                                       const Layout& layout,
                                                       const GivenValues& given);

/// Whether the job trains on CPUs. False for simulated ranks, which stand for ranks on GPUs.
bool runs_on_cpu(const JobConfig& config);

/// Decides the dtype that layers compute in: on a CPU, an unset mixed_precision_param becomes the
/// parameters' dtype. Changes the section and adds a note in that case.
void settle_compute_dtype(JobConfig& config, const GivenValues& given, Diagnostics& diagnostics);

}  // namespace titan::core
