// Runs a plugin's registration and checks it: the plugin must register exactly the components that
// its manifest provides, and every default must fit its own constraints. Used by registry.cpp and
// plugin_check.cpp.
#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include <titan/plugin.h>

#include "core/plugin/built_in.h"
#include "core/plugin/library.h"
#include "core/plugin/manifest.h"

namespace titan::core {

/// A plugin that is open and passed these checks.
struct LoadedPlugin {
  Manifest manifest;
  std::string file;  ///< absolute path, or "built in"
  titan::Plugin registered;
};

/// Opens the file, runs its registration and checks the outcome. Throws a plugin Error with all
/// faults; any exception of the plugin's code becomes one.
std::unique_ptr<LoadedPlugin> load_plugin(const std::filesystem::path& file,
                                          const Manifest& manifest,
                                          const LoadProgress& progress = {});
/// The same for a plugin that is linked into the program.
std::unique_ptr<LoadedPlugin> load_plugin(const BuiltInPlugin& plugin, const Manifest& manifest);

/// The type and text of the exception that is being handled, of any type: "std::out_of_range: index
/// 7". Call it in a catch block only.
std::string describe_current_exception();

}  // namespace titan::core
