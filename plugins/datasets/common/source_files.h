// Finds the files of a data set path. Used by the data sets that read files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace titan::datasets {

struct SourceFile {
  std::filesystem::path path;
  std::string name;  ///< relative to the data set folder, so independent of the folder's place
};

/// The files of `path`, sorted by name as text:
///  - of a file: the file itself, whatever its name;
///  - of a folder: its files that end with one of `suffixes` (".jsonl", ".json.gz"), except hidden
///    files; subfolders are ignored;
///  - of a path with *, ? or [: the matches of the glob.
/// Throws an Error if there are none.
std::vector<SourceFile> find_source_files(const std::string& path,
                                          const std::vector<std::string>& suffixes);

/// The files that find_source_files() returns for a folder; may be none. Throws an io Error if the
/// folder cannot be listed.
std::vector<SourceFile> files_in_folder(const std::filesystem::path& folder,
                                        const std::vector<std::string>& suffixes);

bool has_suffix(std::string_view name, const std::vector<std::string>& suffixes);

}  // namespace titan::datasets
