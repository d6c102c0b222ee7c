// The plugin files that a job may load, from its lock file (titan/plugin_lock.h). Used by the
// catalog, which lists them, and by the registry, which checks each file before it opens it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/plugin_lock.h>

#include "core/plugin/manifest.h"

namespace titan::core {

/// The folder of the plugins that came with this program; empty if it is unknown.
std::filesystem::path own_plugin_folder();

class LockedFiles {
 public:
  /// A job without a lock file: it may load any plugin.
  LockedFiles() = default;
  /// Reads `lock`. `allows_others`: a plugin that the lock does not list is a warning instead of an
  /// error. Throws the errors of read_plugin_lock, and a plugin Error if a listed file is missing.
  LockedFiles(std::filesystem::path lock, bool allows_others);

  bool exists() const { return !lock_.empty(); }
  /// The lock file.
  const std::filesystem::path& lock() const { return lock_; }
  bool allows_others() const { return allows_others_; }
  /// Absolute paths of the listed plugin files.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  /// Null if the lock does not list this file.
  const LockedPlugin* find(const std::filesystem::path& file) const;

 private:
  std::filesystem::path lock_;
  bool allows_others_ = false;
  PluginLock content_;
  std::vector<std::filesystem::path> files_;  // as content_.plugins
};

/// Throws a plugin Error if the lock forbids to load the plugin file `file`: its SHA-256, name or
/// version differs from the lock, or the lock does not list it. Plugins in the program's own folder
/// are part of the program and need no entry. Returns false, after a warning in the log, for a
/// plugin that is not listed but allowed.
bool require_locked(const LockedFiles& locked, const std::filesystem::path& file,
                    const Manifest& manifest);

}  // namespace titan::core
