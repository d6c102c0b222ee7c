// The plugins that are linked into the program (TITAN_STATIC_PLUGINS). The build generates the
// table.
#pragma once

#include <string_view>
#include <vector>

#include <titan/plugin.h>

namespace titan::core {

struct BuiltInPlugin {
  std::string_view manifest;  ///< NUL-separated, as in a plugin file
  const PluginEntry* (*entry)();
};

const std::vector<BuiltInPlugin>& built_in_plugins();

extern const char kHostManifestText[];
extern const std::size_t kHostManifestSize;

}  // namespace titan::core
