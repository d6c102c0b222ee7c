// Which files a data set path means. Used by the data sets that read files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace titan::datasets {

struct SourceFile {
  std::filesystem::path path;
  std::string name;  ///< relative to the folder that the path names: stays the same when the folder
                     ///< moves
};

/// The files of `path`, sorted by name as text:
///  - a file is itself, whatever its name;
///  - a folder its files that end with one of `suffixes` (".jsonl", ".json.gz"), without hidden
///  ones
///    and without those of folders in it;
///  - a path with *, ? or [ what the shell would make of it.
/// Throws an Error when there is none.
std::vector<SourceFile> find_source_files(const std::string& path,
                                          const std::vector<std::string>& suffixes);

/// What a folder stands for in find_source_files(); may be none. Throws an io Error when the folder
/// cannot be listed.
std::vector<SourceFile> files_in_folder(const std::filesystem::path& folder,
                                        const std::vector<std::string>& suffixes);

bool has_suffix(std::string_view name, const std::vector<std::string>& suffixes);

}  // namespace titan::datasets
