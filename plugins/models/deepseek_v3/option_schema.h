// The options of the model deepseek_v3, as [model] has them.
#pragma once

#include <titan/plugin.h>

#include "options.h"

namespace titan::deepseek_v3 {

/// Declares every option of DeepseekV3Options, and what does not go together with a job.
void declare_options(ComponentBuilder<DeepseekV3>& builder);

}  // namespace titan::deepseek_v3
