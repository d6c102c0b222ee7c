// How the options of a Llama 4 are spelled, limited and explained.
#pragma once

#include <titan/plugin.h>

#include "options.h"

namespace titan::llama4 {

/// Declares the options on a component.
void declare_options(ComponentBuilder<Llama4>& builder);

}  // namespace titan::llama4
