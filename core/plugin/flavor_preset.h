// Checks that a flavor's preset fits its model. Used by registry.cpp and plugin_check.cpp: a flavor
// may come from another plugin than its model, so the check needs both.
#pragma once

#include <string>
#include <vector>

#include <titan/plugin.h>

namespace titan::core {

/// All faults, each as a sentence: "unknown option 'dimm'; did you mean 'dim'?", "option 'dim' must
/// be > 0, got 0".
std::vector<std::string> preset_problems(const Flavor& flavor, const Schema& model_schema);

}  // namespace titan::core
