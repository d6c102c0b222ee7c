// The types of numbers of a run. Used by the assembly and the resume.
#pragma once

#include <c10/core/ScalarType.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// [training] dtype: what parameters, gradients and optimizer states are stored in.
at::ScalarType parameter_dtype(const JobConfig& config);
/// What the layers compute in.
at::ScalarType compute_dtype(const JobConfig& config);
/// What gradients are summed over ranks in.
at::ScalarType reduce_dtype(const JobConfig& config);

}  // namespace titan::core
