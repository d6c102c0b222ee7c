// Builds the resolved job as one map of sections, which is printed, logged and written into the
// run's folder. Used by resolve.cpp.
#pragma once

#include <titan/value.h>

#include "core/config/schema/job_config.h"
#include "core/config/schema/option_table.h"

namespace titan::core {

/// See JobConfig::resolved. `table` has the options of the selected components; `flavor` is the
/// preset of the model's flavor.
Value resolved_value(const JobConfig& config, const OptionTable& table, const Value& flavor);

}  // namespace titan::core
