// Brings one file of a repo to its place: kept when it is there, else resumed, checked and named.
// Used by download_run.cpp, on several threads.
#pragma once

#include <filesystem>
#include <string>

#include "listing.h"
#include "progress.h"
#include "remote_file.h"

namespace titan::download {

enum class FileOutcome {
  kept,     ///< it was there, with the right checksum
  fetched,  ///< it was not there
  replaced  ///< another content was there
};

/// `root`: the existing output folder. `commit`: the one that `file` was listed at. The file
/// appears under its name only when size and checksum are right; until then it is a .part beside
/// it. Throws a data Error for what concerns this file alone (checksum, size, name), an io Error
/// for what would concern the next one too (disk, server, permission), and Stopped.
FileOutcome bring_file(const Connection& connection, const std::string& commit,
                       const RemoteFile& file, const std::filesystem::path& root,
                       Progress& progress);

/// Bytes of the file that are on disk already, whole or as a part; nothing is checked.
int64_t bytes_on_disk(const RemoteFile& file, const std::filesystem::path& root);

}  // namespace titan::download
