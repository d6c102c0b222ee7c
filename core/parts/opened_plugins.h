// Checks, opens and compares plugin files for commands of plugins. Used by titan and titan-train.
#pragma once

#include <titan/plugin_files.h>

namespace titan::core {

class OpenedPlugins final : public PluginFiles {
 public:
  Value manifest(const std::filesystem::path& file) const override;
  Value own_manifest() const override;
  std::string mismatch(const Value& manifest) const override;
  PluginFileReport check(const std::filesystem::path& file, double seconds) override;
  OpenedPlugin open(const std::filesystem::path& file) override;
  std::vector<std::string> abilities(const Component& component) const override;
  std::filesystem::path own_folder() const override;
};

}  // namespace titan::core
