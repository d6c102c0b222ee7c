// The text of `titan list`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/catalog.h"

namespace titan::core {

enum class Columns {
  summaries,  ///< kind, name, one line on what it is; the flavors of a model share a row
  files       ///< kind, name, plugin, version, file
};

/// A table of all components in the order of the kinds; then the files that cannot be used here,
/// each with the reason, and the names that several files provide. `kind` empty: all. Opens no
/// plugin.
std::string listing(const Catalog& catalog, std::string_view kind, Columns columns);

/// Why a plugin file cannot be used here, as far as its manifest tells; empty when it can.
std::string why_unusable(const CatalogEntry& entry);

/// A component that a job uses and the plugin that provides it.
struct UsedComponent {
  std::string kind, name;
  const CatalogEntry* entry = nullptr;  ///< never null
};

/// The components of one job: kind, name, plugin; with Columns::files also version and file.
std::string listing(const std::vector<UsedComponent>& used, Columns columns);

}  // namespace titan::core
