// Which files a data set path means. Used by the jsonl dataset.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::datasets {

struct SourceFile {
  std::filesystem::path path;
  std::string
      name;  ///< relative to the folder that the path names: stays the same when the folder moves
};

/// The files of `path`, sorted: a file is itself, a folder its *.jsonl (not those of folders in
/// it), and a path with
/// *, ? or [ what the shell would make of it. Throws an Error when there is none, or one is
/// compressed.
std::vector<SourceFile> find_source_files(const std::string& path);

}  // namespace titan::datasets
