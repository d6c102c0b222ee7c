// Opens a plugin's file: compares the manifest with this program, checks the libraries that the
// plugin would load, then opens the file and finds its one entry symbol. Used by registration.cpp.
// An opened file stays open for the life of the process.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <titan/plugin.h>

#include "core/plugin/manifest.h"

namespace titan::core {

/// Called with each step before it begins, worded as the end of "while ...": "the library was
/// opened". `titan check` shows the steps.
using LoadProgress = std::function<void(const std::string& step)>;

/// Opens the plugin file whose manifest is `manifest`. Throws a plugin Error with a report that
/// begins "cannot use plugin 'NAME' from FILE" when the plugin is incompatible, would load a second
/// LibTorch, needs a missing symbol or library, or has no entry.
const PluginEntry& open_library(const std::filesystem::path& file, const Manifest& manifest,
                                const LoadProgress& progress = {});

/// "titan::Linear::forward()" of "_ZN5titan..."; `name` itself if it is not a C++ name.
std::string demangled(const char* name);

/// The first line of every report on a plugin that cannot be used; `file` may be "built in".
std::string cannot_use(const Manifest& manifest, const std::string& file);

}  // namespace titan::core
