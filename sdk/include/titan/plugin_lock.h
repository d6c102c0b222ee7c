// The lock file of a job: which plugin files it may load, each with its SHA-256. `titan plugin`
// writes it next to the configuration; the program checks every plugin file that it loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(plugin_lock);

namespace titan {

struct LockedPlugin {
  std::string name, version;
  std::filesystem::path file;  ///< relative to the folder of the lock file
  std::string sha256;
  std::string index;  ///< address of the index that it came from
  std::string key;    ///< the minisign public key that signed it

  friend bool operator==(const LockedPlugin&, const LockedPlugin&) = default;
};

struct TITAN_API PluginLock {
  std::vector<LockedPlugin> plugins;  ///< sorted by name

  /// Null if there is none.
  const LockedPlugin* find(std::string_view name) const;
};

/// The lock file of a configuration: "job.lock" next to "job.toml".
TITAN_API std::filesystem::path lock_file_of(const std::filesystem::path& configuration);
/// Throws an io Error, or a config Error that names the file and the fault: not JSON, another
/// schema, a missing or unknown member, a name twice, a file outside of the lock's folder.
TITAN_API PluginLock read_plugin_lock(const std::filesystem::path& file);
/// Replaces the file atomically.
TITAN_API void write_plugin_lock(const std::filesystem::path& file, const PluginLock& lock);

}  // namespace titan
