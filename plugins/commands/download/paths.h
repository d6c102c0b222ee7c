// Names that a server gives, on this computer's disk: which are refused, and where the others lie.
// The server is not trusted. Used by listing.cpp and file_transfer.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace titan::download {

/// Throws a data Error unless `path` is relative, free of "..", "." and empty parts, of ".git", of
/// backslashes and of control characters.
void require_harmless(std::string_view path);

/// Where `path` (harmless) lies below the existing folder `root`; makes the folders between.
/// Throws a data Error when a symbolic link among them leads out of `root`.
std::filesystem::path place_below(const std::filesystem::path& root, std::string_view path);

}  // namespace titan::download
