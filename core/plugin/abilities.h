// Which optional interfaces a component has. Used by titan describe.
#pragma once

#include <string>
#include <vector>

#include <titan/plugin.h>

namespace titan::core {

/// First the interfaces that the kind's header lists, then those with headers of their own that
/// this program knows, by name: "StatefulOptimizer", "HfExchange". A plugin that was built before
/// an interface existed does not have it.
std::vector<std::string> abilities_of(const Component& component);

}  // namespace titan::core
