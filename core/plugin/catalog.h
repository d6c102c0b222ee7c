// Lists the plugin files and the components that each declares, read from the files without opening
// them. Used by the registry and by `titan list`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/locked_files.h"
#include "core/plugin/manifest.h"

namespace titan::core {

/// One plugin file, a plugin that is linked into the program, or a plugin that a build tree can
/// build.
struct CatalogEntry {
  std::filesystem::path file;  ///< absolute; empty when built in
  Manifest manifest;           ///< empty if `problem` is set
  std::string problem;        ///< why the manifest could not be read; such a file matters only when
                              ///< nothing else fits
  std::string build_command;  ///< builds the file, which does not exist yet; else empty
};

/// The outcome of a search, in the order of the search path. Earlier folders do not hide later
/// ones: two files that offer the same name are an error when a caller asks for that name.
class Catalog {
 public:
  /// Looks through `folders` (not recursive) for `*.plugin.so`, in this order, each folder once;
  /// adds the plugins that are built in. A folder that does not exist is part of the search trail,
  /// not an error. The folder of a build tree has a list, `plugins.txt`, of the plugins that can be
  /// built there: a line "# build: <command>", a line "# summary <command>: <text>" for each
  /// command, then a row "<plugin> <kind>:<name>..." for each plugin. A row whose file is missing
  /// becomes an entry with a build command. The files of `locked` come first; throws a plugin Error
  /// if one is missing.
  explicit Catalog(std::vector<std::filesystem::path> folders, LockedFiles locked = {});

  const std::vector<CatalogEntry>& entries() const { return entries_; }
  const LockedFiles& locked() const { return locked_; }
  /// All entries that provide `name` of `kind`.
  std::vector<const CatalogEntry*> providers(std::string_view kind, std::string_view name) const;
  /// The names of one kind that any readable entry provides, sorted, without repeats. For flavors:
  /// "<model>/<flavor>".
  std::vector<std::string> names(std::string_view kind) const;
  /// One line per folder: the number of plugin files, or the reason why it cannot be read. Then a
  /// line for each file whose manifest is unreadable.
  std::string search_trail() const;

 private:
  std::vector<std::filesystem::path> folders_;
  std::vector<CatalogEntry> entries_;
  LockedFiles locked_;
};

/// The folders of a run: [plugins] paths, then TITAN_PLUGIN_PATH (colon-separated), then the
/// installation's own folder.
std::vector<std::filesystem::path> plugin_search_path(const std::vector<std::string>& configured);

/// The two parts of a flavor's full name.
struct FlavorName {
  std::string model, flavor;
};

/// Splits "<model>/<flavor>". Either may hold a '/' after its owner. The model is the longest of
/// `models` that `name` begins with; if `name` begins with none of them, everything before the last
/// '/'. Throws a config Error for a name without '/'.
FlavorName split_flavor(std::string_view name, const std::vector<std::string>& models);

/// All kinds, in the order of the documentation: "model", "flavor", "converter", ...
const std::vector<std::string>& plugin_kinds();

}  // namespace titan::core
