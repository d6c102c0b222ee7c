// Declares the options in [model] of the model deepseek_v3. Used by plugin.cpp.
#pragma once

#include <titan/plugin.h>

#include "options.h"

namespace titan::deepseek_v3 {

/// Declares every option of DeepseekV3Options and the checks against the job.
void declare_options(ComponentBuilder<DeepseekV3>& builder);

}  // namespace titan::deepseek_v3
