// The version, toolchain and build type of this program. Used by --version, the manifest check and
// the run folder.
#pragma once

#include <string>

namespace titan::core {

/// "titan 0.1.0 (git 1a2b3c, torch 2.11.0, gcc 12, Release)"
std::string build_summary();

}  // namespace titan::core
