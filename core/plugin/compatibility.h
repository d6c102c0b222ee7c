// Checks whether a plugin was built for this program: compares its manifest with the host's, field
// by field, before the file is opened. Used by library.cpp and `titan list`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/plugin/manifest.h"

namespace titan::core {

/// One field in which plugin and program differ.
struct Difference {
  std::string field;
  std::string plugin;
  std::string host;
  std::string rule;  ///< "must be equal", "major version must be equal", "allowed"
  bool prevents_use = false;
};

/// All fields that differ, the most important first, and the optional headers of the sdk that the
/// plugin includes and that differ. `torch=none` and `cuda=none` of a plugin fit any program.
std::vector<Difference> differences(const Manifest& plugin, const Manifest& host);

/// Whether none of the differences prevents the use.
bool is_compatible(const std::vector<Difference>& differences);

/// The differences that prevent the use, on one line: "torch 2.10.0 instead of 2.11.0, cuda 12.8
/// instead of 13.0".
std::string summary(const std::vector<Difference>& differences);

/// Throws a plugin Error when the plugin cannot be used, with the table of all differences and the
/// command that rebuilds the plugin.
void require_compatible(const Manifest& plugin, const Manifest& host,
                        const std::filesystem::path& file);

}  // namespace titan::core
