// The declarations of the program and its plugins, from `titan describe --all --json`. Used by the
// commands of this plugin.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::commands {

/// Asks `program`; `folders` are searched for plugins too. Throws an io Error with the program's
/// own message.
Value declared(const std::filesystem::path& program, const std::vector<std::string>& folders);

/// The same from a file below $XDG_CACHE_HOME, which is written again when a program or plugin file
/// has changed. Works without a cache folder, only slower. Null if the programs are not built yet.
Value declared_once(const std::filesystem::path& program, const std::vector<std::string>& folders);

/// The JSON that declared_once returns is in this file.
std::filesystem::path declarations_file(const std::filesystem::path& program,
                                        const std::vector<std::string>& folders);

}  // namespace titan::commands
