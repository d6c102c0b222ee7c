// Whether a flavor's preset fits the model it is made for. Used by registry.cpp and
// plugin_check.cpp: flavors may come from another plugin than their model, so this is known only
// when both are there.
#pragma once

#include <string>
#include <vector>

#include <titan/plugin.h>

namespace titan::core {

/// All that is wrong, each as a sentence: "unknown option 'dimm'; did you mean 'dim'?", "option
/// 'dim' must be > 0, got 0".
std::vector<std::string> preset_problems(const Flavor& flavor, const Schema& model_schema);

}  // namespace titan::core
