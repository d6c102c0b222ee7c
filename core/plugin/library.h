// Opens a plugin's file: the manifest against this program, the libraries it would bring, then the
// file itself and its one entry symbol. Used by registration.cpp. What was opened stays open for
// the life of the process.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <titan/plugin.h>

#include "core/plugin/manifest.h"

namespace titan::core {

/// Told about each step before it begins, as the end of "while ...": "the library was opened".
/// `titan check` shows them.
using LoadProgress = std::function<void(const std::string& step)>;

/// Opens the plugin file whose manifest is `manifest`. Throws a plugin Error with a report that
/// begins "cannot use plugin 'NAME' from FILE" when it is incompatible, would bring a second
/// LibTorch, needs what is not there or has no entry.
const PluginEntry& open_library(const std::filesystem::path& file, const Manifest& manifest,
                                const LoadProgress& progress = {});

/// "titan::Linear::forward()" of "_ZN5titan..."; the name itself when it is no C++ name.
std::string demangled(const char* name);

/// The first line of every report on a plugin that cannot be used; `file` may be "built in".
std::string cannot_use(const Manifest& manifest, const std::string& file);

}  // namespace titan::core
