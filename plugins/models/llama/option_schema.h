// How the options of a Llama model are spelled, limited and explained.
#pragma once

#include <titan/plugin.h>

#include "llama.h"

namespace titan::llama {

/// Declares the options on a component.
void declare_options(ComponentBuilder<Llama>& builder);

}  // namespace titan::llama
