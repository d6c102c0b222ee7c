// Downloads one file of a repo: keeps a complete one, resumes a partial one, verifies it, then
// gives it its name. Used by download_run.cpp, on several threads.
#pragma once

#include <filesystem>
#include <string>

#include "listing.h"
#include "progress.h"
#include "remote_file.h"

namespace titan::download {

enum class FileOutcome {
  kept,     ///< it existed, with the right checksum
  fetched,  ///< it did not exist
  replaced  ///< it existed with other content
};

/// `root`: the existing output folder. `commit`: at which `file` was listed. The file gets its name
/// only after size and checksum were verified; until then it is a .part file next to it. Throws a
/// data Error for problems of this file (checksum, size, name), an io Error for problems that would
/// affect the next file too (disk, server, permission), and Stopped.
FileOutcome bring_file(const Connection& connection, const std::string& commit,
                       const RemoteFile& file, const std::filesystem::path& root,
                       Progress& progress);

/// Bytes of the file already on disk, complete or partial; not verified.
int64_t bytes_on_disk(const RemoteFile& file, const std::filesystem::path& root);

}  // namespace titan::download
