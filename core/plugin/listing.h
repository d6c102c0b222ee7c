// The text that `titan list` shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/catalog.h"

namespace titan::core {

/// A table of kind, name, plugin, version and file in the order of the kinds; then the files that
/// cannot be used here, each with the reason, and the names that several files provide. An empty
/// `kind` means all. Opens no plugin.
std::string listing(const Catalog& catalog, std::string_view kind);

/// A component that a job uses and the plugin that provides it.
struct UsedComponent {
  std::string kind, name;
  const CatalogEntry* entry = nullptr;  ///< never null
};

/// The same table, of these components alone.
std::string listing(const std::vector<UsedComponent>& used);

}  // namespace titan::core
