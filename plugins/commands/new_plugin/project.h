// Writes a project into a new folder.
#pragma once

#include <filesystem>
#include <vector>

#include "templates.h"

namespace titan::commands {

/// Writes all files below `folder`, or none: after an error the written files are removed. Returns
/// their paths. Throws a config Error if `folder` exists and is not an empty folder, an io Error if
/// a file cannot be written.
std::vector<std::filesystem::path> write_project(const std::vector<ProjectFile>& files,
                                                 const std::filesystem::path& folder);

}  // namespace titan::commands
