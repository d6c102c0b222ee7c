#include "core/plugin/locked_files.h"

#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/log.h>
#include <titan/program/installation.h>
#include <titan/program/shell_word.h>

#include "core/plugin/compatibility.h"
#include "core/plugin/library.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

bool is_same_path(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error) && !error;
}

/// The command that installs `plugin`, or brings the files of the lock again.
std::string install_command(const fs::path& lock, const std::string& plugin = "") {
  return "titan plugin install " + (plugin.empty() ? "" : shell_word(plugin) + " ") + "--lock " +
         shell_word(lock.string());
}

}  // namespace

fs::path own_plugin_folder() {
  const fs::path folder = installation_folder();
  return folder.empty() ? fs::path() : folder / "lib/titan/plugins";
}

LockedFiles::LockedFiles(fs::path lock, bool allows_others)
    : lock_(std::move(lock)), allows_others_(allows_others), content_(read_plugin_lock(lock_)) {
  const fs::path folder = fs::absolute(lock_).parent_path();
  for (const LockedPlugin& plugin : content_.plugins) {
    files_.push_back((folder / plugin.file).lexically_normal());
    std::error_code error;
    TITAN_CHECK(fs::exists(files_.back(), error), plugin, "the lock file ", lock_.string(),
                " lists plugin '", plugin.name, "' ", plugin.version, ", whose file ",
                files_.back().string(), " does not exist\n  install it: ", install_command(lock_));
  }
}

const LockedPlugin* LockedFiles::find(const fs::path& file) const {
  for (size_t i = 0; i < files_.size(); ++i)
    if (is_same_path(files_[i], file)) return &content_.plugins[i];
  return nullptr;
}

bool require_locked(const LockedFiles& locked, const fs::path& file, const Manifest& manifest) {
  if (!locked.exists()) return true;
  const std::string headline = cannot_use(manifest, file.string());
  if (const LockedPlugin* listed = locked.find(file)) {
    const std::string hash = sha256_of_file(file);
    TITAN_CHECK(hash == listed->sha256, plugin, headline,
                "\n  the file is not the one that was installed: its SHA-256 is ", hash, "\n  ",
                locked.lock().string(), " has ", listed->sha256,
                "\n  install it again: ", install_command(locked.lock()));
    TITAN_CHECK(manifest.plugin == listed->name && manifest.version == listed->version, plugin,
                headline, "\n  it is version ", manifest.version, " of '", manifest.plugin, "'; ",
                locked.lock().string(), " lists it as version ", listed->version, " of '",
                listed->name, "'\n  install it again: ", install_command(locked.lock()));
    const auto different = differences(manifest, host_manifest());
    TITAN_CHECK(
        is_compatible(different), plugin, headline, "\n  it was built with ", summary(different),
        "\n  install a version for this program: ", install_command(locked.lock(), listed->name));
    return true;
  }
  if (is_same_path(file.parent_path(), own_plugin_folder())) return true;
  TITAN_CHECK(locked.allows_others(), plugin, headline, "\n  the lock file ",
              locked.lock().string(), " does not list it\n  install it from an index: ",
              install_command(locked.lock(), manifest.plugin),
              "\n  or load it unsigned: --plugins.allow_unsigned");
  log::warn("plugin '" + manifest.plugin + "' " + manifest.version + " from " + file.string() +
            " is not in the lock file " + locked.lock().string() +
            ": loaded unsigned, because plugins.allow_unsigned is set");
  return false;
}

}  // namespace titan::core
