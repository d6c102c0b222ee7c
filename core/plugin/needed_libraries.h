// Finds the libraries that opening a plugin would load into the process, before it is opened. Two
// copies of LibTorch in one process corrupt each other silently, so a plugin that would load a
// second one is refused. Used by library.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::core {

/// The files of all shared libraries that this process has loaded now.
std::vector<std::filesystem::path> loaded_libraries();

/// Why opening `plugin` would load another LibTorch than the one among `loaded`; empty if it would
/// not, or if `loaded` has no LibTorch. Follows the needed libraries that the plugin's own search
/// path leads to.
std::string second_torch_problem(const std::filesystem::path& plugin,
                                 const std::vector<std::filesystem::path>& loaded);

}  // namespace titan::core
