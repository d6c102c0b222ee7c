// Brings plugin files from indexes next to a configuration, verified, and writes its lock file.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <titan/plugin_lock.h>

#include "actions.h"
#include "index.h"
#include "index_access.h"
#include "new_file.h"

namespace titan::plugin_index {

/// The folder of installed files, next to the lock file.
constexpr const char* kInstallFolder = "titan_plugins";

/// The signature next to a plugin file, which `minisign -V` reads too.
std::filesystem::path signature_file(const std::filesystem::path& file);

/// A verified plugin file, published but removed again by the destructor of `files`.
struct BroughtPlugin {
  LockedPlugin locked;
  std::vector<std::unique_ptr<NewFile>> files;  ///< empty if the file was there
};

/// One build of a plugin in an index.
struct ChosenBuild {
  AddedIndex added;
  std::vector<PublicKey> keys;
  std::string plugin;
  PluginBuild build;
};

/// Fetches the file of `chosen` into `folder`, the folder of the lock file. Throws a plugin Error
/// if its size, hash, signature, signed comment or manifest is not what the index says.
BroughtPlugin bring(const ChosenBuild& chosen, const std::filesystem::path& folder,
                    const PluginFiles& files);

}  // namespace titan::plugin_index
