// Declares the options of Llama 4: names, limits and help texts. Used by plugin.cpp.
#pragma once

#include <titan/plugin.h>

#include "options.h"

namespace titan::llama4 {

/// Declares the options on a component.
void declare_options(ComponentBuilder<Llama4>& builder);

}  // namespace titan::llama4
