// See text_files.h.
#include "text_files.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include <titan/error.h>

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

class TreeWalk {
 public:
  explicit TreeWalk(const std::vector<std::string>& suffixes) : suffixes_(suffixes) {}

  /// `prefix`: the folder's name in the data set, with a trailing slash.
  void go_into(const fs::path& folder, const std::string& prefix) {
    struct stat status {};
    TITAN_CHECK(::stat(folder.c_str(), &status) == 0, io, "cannot read folder '", folder.string(),
                "': ", std::generic_category().message(errno));
    if (!visited_.emplace(status.st_dev, status.st_ino).second) return;
    for (const std::string& name : names_in(folder)) {
      const fs::path path = folder / name;
      std::error_code reason;
      if (fs::is_directory(path, reason)) {
        go_into(path, prefix + name + "/");
      } else if (has_suffix(name, suffixes_)) {
        TITAN_CHECK(fs::exists(path, reason), io, "cannot read '", path.string(),
                    "': ", reason ? reason.message() : "it links to a file that does not exist");
        TITAN_CHECK(fs::is_regular_file(path, reason), io, "cannot read '", path.string(),
                    "': ", reason ? reason.message() : "it is not a regular file");
        found_.push_back({path, prefix + name});
      }
    }
  }
  std::vector<SourceFile> found() && {
    std::sort(found_.begin(), found_.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
    return std::move(found_);
  }

 private:
  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code reason;
    for (fs::directory_iterator entry(folder, reason), end; !reason && entry != end;
         entry.increment(reason)) {
      std::string name = entry->path().filename().string();
      if (!name.starts_with('.')) names.push_back(std::move(name));
    }
    TITAN_CHECK(!reason, io, "cannot list folder '", folder.string(), "': ", reason.message());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::vector<std::string>& suffixes_;
  std::set<std::pair<dev_t, ino_t>> visited_;
  std::vector<SourceFile> found_;
};

}  // namespace

std::vector<SourceFile> find_text_files(const fs::path& folder,
                                        const std::vector<std::string>& suffixes) {
  TreeWalk walk(suffixes);
  walk.go_into(folder, "");
  return std::move(walk).found();
}

}  // namespace titan::datasets
