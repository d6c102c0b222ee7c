// See source_files.h.
#include "source_files.h"

#include <algorithm>
#include <system_error>

#include <glob.h>

#include <titan/error.h>

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

bool is_compressed(const fs::path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst";
}

void refuse_compressed(const fs::path& path) {
  TITAN_CHECK(!is_compressed(path), data, "cannot read '", path.string(), "': reading compressed (",
              path.extension().string(), ") files is not built yet; unpack it first");
}

std::vector<SourceFile> in_folder(const fs::path& folder) {
  std::vector<SourceFile> files;
  fs::path compressed;
  std::error_code reason;
  for (const auto& entry : fs::directory_iterator(folder, reason)) {
    if (entry.path().extension() == ".jsonl") {
      files.push_back({entry.path(), entry.path().filename().string()});
    } else if (is_compressed(entry.path())) {
      compressed = entry.path();
    }
  }
  TITAN_CHECK(!reason, io, "cannot list folder '", folder.string(), "': ", reason.message());
  if (files.empty() && !compressed.empty()) refuse_compressed(compressed);
  TITAN_CHECK(!files.empty(), data, "data set folder '", folder.string(),
              "' holds no *.jsonl file");
  return files;
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
    refuse_compressed(path);
    if (fs::is_directory(path)) continue;
    std::string name = path.lexically_relative(root).string();
    files.push_back({std::move(path), std::move(name)});
  }
  TITAN_CHECK(!files.empty(), io, "only folders match data set path '", pattern, "'");
  return files;
}

}  // namespace

std::vector<SourceFile> find_source_files(const std::string& path) {
  TITAN_CHECK(
      !path.empty(), config,
      "dataset 'jsonl' needs a path: set [training] dataset_path to a file, folder or glob");
  std::vector<SourceFile> files;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    files = in_folder(path);
  } else if (!fs::exists(path, ignored) && path.find_first_of("*?[") != std::string::npos) {
    files = matching(path);
  } else {
    TITAN_CHECK(fs::exists(path, ignored), io, "data set path '", path, "' does not exist");
    refuse_compressed(path);
    files.push_back({path, fs::path(path).filename().string()});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace titan::datasets
