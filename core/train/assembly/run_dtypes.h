// The dtypes of a run. Used by the assembly and the resume.
#pragma once

#include <c10/core/ScalarType.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// [training] dtype: of stored parameters, gradients and optimizer states.
at::ScalarType parameter_dtype(const JobConfig& config);
/// The dtype that the layers compute in.
at::ScalarType compute_dtype(const JobConfig& config);
/// The dtype in which gradients are summed over ranks.
at::ScalarType reduce_dtype(const JobConfig& config);

}  // namespace titan::core
