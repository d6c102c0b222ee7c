// Checks, opens and compares plugin files by their path. Used by `titan check`, which also runs the
// conformance tests of a plugin, and by `titan plugin`. No torch in this header, but plugins that
// need torch open only in a command that is not TORCH_FREE.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/plugin.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(plugin_files);

namespace titan {

/// What loading a plugin file has shown.
struct PluginFileReport {
  std::vector<std::string> passed;  ///< the steps that succeeded: "the library was opened"
  std::vector<std::string> notes;   ///< checks that were not possible, and why
  std::string problem;              ///< the report of the fault; empty: the plugin can be used
};

/// A plugin file that is open until the process ends.
struct OpenedPlugin {
  const Plugin* registered = nullptr;  ///< its components and flavors
  Value manifest;                      ///< as PluginFiles::manifest() returns it
};

/// Thread: main thread.
class TITAN_API PluginFiles {
 public:
  virtual ~PluginFiles();

  /// The manifest of a plugin file: a map of texts, and `uses`, the list of the optional headers
  /// that it includes. Opens no plugin. Throws a plugin Error that names the file and the fault.
  virtual Value manifest(const std::filesystem::path& file) const = 0;
  /// The manifest of this program.
  virtual Value own_manifest() const = 0;
  /// Why this program cannot load a plugin with that manifest: "torch 2.10.0 instead of 2.11.0,
  /// cuda 12.8 instead of 13.0". Empty: it can. Needs no other members than those it compares.
  virtual std::string mismatch(const Value& manifest) const = 0;

  /// Loads the file in a child process, which is killed after `seconds`: manifest, compatibility,
  /// libraries, registrations, defaults and the presets of flavors. Call it while the process has
  /// one thread.
  virtual PluginFileReport check(const std::filesystem::path& file, double seconds) = 0;
  /// Opens the file in this process. Throws a plugin Error, as a run that selects the plugin does.
  virtual OpenedPlugin open(const std::filesystem::path& file) = 0;
  /// Optional interfaces of a component, as `titan describe` prints them: "StatefulOptimizer".
  virtual std::vector<std::string> abilities(const Component& component) const = 0;
  /// The folder of the plugins that come with the program, which every run searches.
  virtual std::filesystem::path own_folder() const = 0;
};

}  // namespace titan
