// The version, toolchain and build type of this program. Used by --version, the manifest check and
// the run folder.
#pragma once

#include <string>

namespace titan::core {

/// "titan 0.2.0 (commit 1a2b3c, LibTorch 2.15.0, sdk 0123456789abcdef, gcc 12, Release)"; sdk is
/// the hash of its headers.
std::string build_summary();

}  // namespace titan::core
