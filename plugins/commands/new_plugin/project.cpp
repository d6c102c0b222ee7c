#include "project.h"

#include <fstream>
#include <system_error>

#include <titan/error.h>

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  TITAN_CHECK(!error, io, "cannot create the folder '", path.parent_path().string(),
              "': ", error.message());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  TITAN_CHECK(out, io, "cannot write '", path.string(), "'");
}

/// Removes `written` and the folders that this leaves empty, up to `folder`.
void remove_written(const std::vector<fs::path>& written, const fs::path& folder) {
  std::error_code error;
  for (const fs::path& path : written) {
    fs::remove(path, error);
    for (fs::path at = path.parent_path(); at != folder && !at.empty(); at = at.parent_path())
      if (!fs::remove(at, error)) break;  // removes only an empty folder
  }
  fs::remove(folder, error);
}

}  // namespace

std::vector<fs::path> write_project(const std::vector<ProjectFile>& files, const fs::path& folder) {
  std::error_code error;
  const bool is_empty_folder = fs::is_directory(folder, error) && fs::is_empty(folder, error);
  TITAN_CHECK(!fs::exists(fs::symlink_status(folder, error)) || is_empty_folder, config, "'",
              folder.string(), "' exists already; name another folder with --directory");
  std::vector<fs::path> written;
  try {
    for (const ProjectFile& file : files) {
      written.push_back(folder / file.path);
      write_file(written.back(), file.text);
    }
  } catch (...) {
    remove_written(written, folder);
    throw;
  }
  return written;
}

}  // namespace titan::commands
