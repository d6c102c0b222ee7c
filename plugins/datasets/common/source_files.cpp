// See source_files.h.
#include "plugins/datasets/common/source_files.h"

#include <algorithm>
#include <system_error>

#include <glob.h>

#include <titan/error.h>

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

std::string listed(const std::vector<std::string>& suffixes) {
  std::string text;
  for (const std::string& suffix : suffixes) text += (text.empty() ? "*" : ", *") + suffix;
  return text;
}

void sort_by_name(std::vector<SourceFile>& files) {
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
}

std::vector<SourceFile> matching(const std::string& pattern) {
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  TITAN_CHECK(!paths.empty(), io, "no file matches data set path '", pattern, "'");

  const size_t wildcard = pattern.find_first_of("*?[");
  const fs::path root = fs::path(pattern.substr(0, wildcard) + "x").parent_path();
  std::vector<SourceFile> files;
  for (fs::path& path : paths) {
    if (fs::is_directory(path)) continue;
    std::string name = path.lexically_relative(root).string();
    files.push_back({std::move(path), std::move(name)});
  }
  TITAN_CHECK(!files.empty(), io, "only folders match data set path '", pattern, "'");
  return files;
}

}  // namespace

bool has_suffix(std::string_view name, const std::vector<std::string>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); });
}

std::vector<SourceFile> files_in_folder(const fs::path& folder,
                                        const std::vector<std::string>& suffixes) {
  std::vector<SourceFile> files;
  std::error_code reason;
  for (fs::directory_iterator entry(folder, reason), end; !reason && entry != end;
       entry.increment(reason)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') || !has_suffix(name, suffixes)) continue;
    if (!fs::is_directory(entry->path(), ignored)) files.push_back({entry->path(), name});
  }
  TITAN_CHECK(!reason, io, "cannot list folder '", folder.string(), "': ", reason.message());
  sort_by_name(files);
  return files;
}

std::vector<SourceFile> find_source_files(const std::string& path,
                                          const std::vector<std::string>& suffixes) {
  TITAN_CHECK(!path.empty(), config,
              "the data set needs a path: set [training] dataset_path to a file, folder or glob");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    std::vector<SourceFile> files = files_in_folder(path, suffixes);
    TITAN_CHECK(!files.empty(), data, "data set folder '", path, "' holds no file that matches ",
                listed(suffixes));
    return files;
  }
  if (fs::exists(path, ignored)) return {{path, fs::path(path).filename().string()}};
  TITAN_CHECK(path.find_first_of("*?[") != std::string::npos, io, "data set path '", path,
              "' does not exist");
  std::vector<SourceFile> files = matching(path);
  sort_by_name(files);
  return files;
}

}  // namespace titan::datasets
