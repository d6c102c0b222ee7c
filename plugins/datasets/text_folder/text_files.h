// Finds the files of a folder tree. Used by the dataset `text_folder`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {

/// The files below `folder` whose names end with one of `suffixes`, in the order of their names
/// relative to it. Hidden files and folders (".git") are skipped. Links are followed, but each real
/// folder is entered only once, by the first of its names, so loops end and no file is found twice.
/// Throws an io Error naming the path that cannot be listed, a dangling link included.
std::vector<SourceFile> find_text_files(const std::filesystem::path& folder,
                                        const std::vector<std::string>& suffixes);

}  // namespace titan::datasets
