// Checks file names from the server, which is not trusted, and maps them to paths on disk. Used by
// listing.cpp and file_transfer.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace titan::download {

/// Throws a data Error when `path` is absolute or contains "..", ".", ".git", an empty part, a
/// backslash or a control character.
void require_harmless(std::string_view path);

/// The path of the harmless name `path` below the existing folder `root`; makes the folders
/// between. Throws a data Error when a symbolic link among them leads out of `root`.
std::filesystem::path place_below(const std::filesystem::path& root, std::string_view path);

}  // namespace titan::download
