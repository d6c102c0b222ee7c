// The installation that this program is part of: its folder, Titan's own files in it, and the
// LibTorch that its programs run with. Used by programs that start others, and by readers of files
// that ship with Titan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/program/environment.h>

namespace titan {

/// The folder above the program's folder. A build tree has the layout of an installation.
TITAN_API std::filesystem::path installation_folder();

/// `path`, or the installation's file of that name. "tests/assets/..." and "train_configs/..." name
/// files that ship with Titan; if they do not exist in the current folder, those of
/// share/titan are meant. Any other path is returned as it is.
TITAN_API std::string with_bundled_files(const std::string& path);

/// The variables ("NAME=value") with which a program of `installation` finds LibTorch. They are
/// unchanged in a build tree, and when LibTorch lies next to the installation, as in site-packages.
/// Otherwise LibTorch is looked for in TITAN_TORCH_ROOT, which decides if it is set, in the active
/// virtual environment and in the torch of python3. Throws a config Error that names each place and
/// what was found there, if none has the version that Titan was built for.
TITAN_API std::vector<std::string> environment_with_torch(const std::filesystem::path& installation,
                                                          const Environment& environment);

/// Gives LD_LIBRARY_PATH the value back that it had before environment_with_torch(), so that
/// programs that this one starts do not inherit it. Call it first in main().
TITAN_API void restore_library_path();

}  // namespace titan
