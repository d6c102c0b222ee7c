#include "core/train/assembly/run_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <titan/error.h>

#include "core/config/sources/toml_writer.h"

namespace titan::core {
namespace {

/// Writes a temporary file and renames it, so that a reader never sees half a file.
void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  TITAN_CHECK(out, io, "cannot write '", temporary.string(), "': ", std::strerror(errno),
              "; choose another job.dump_folder or free disk space");
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  TITAN_CHECK(!error, io, "cannot write '", path.string(), "': ", error.message(),
              "; choose another name or move the existing file");
}

}  // namespace

void check_run_folder(const JobConfig& config) {
  const std::filesystem::path folder = std::filesystem::absolute(config.job.dump_folder);
  std::filesystem::path there = folder;
  std::error_code ignored;
  while (!std::filesystem::exists(there, ignored) && there.has_relative_path())
    there = there.parent_path();
  const bool is_folder = std::filesystem::is_directory(there, ignored);
  TITAN_CHECK(is_folder && ::access(there.c_str(), W_OK | X_OK) == 0, io,
              "cannot make the folder '", config.job.dump_folder, "' (job.dump_folder): '",
              there.string(), is_folder ? "' may not be written" : "' is a file, not a folder",
              "; choose another job.dump_folder");
}

void prepare_run_folder(const JobConfig& config, FolderStart start, FolderLock& lock) {
  const std::filesystem::path folder = config.job.dump_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TITAN_CHECK(!error && std::filesystem::is_directory(folder), io, "cannot make the folder '",
              folder.string(),
              "' (job.dump_folder): ", error ? error.message() : "it exists and is not a folder");
  lock.take(folder, "job.dump_folder");
  keep_earlier_files(config, start);
  write_file(folder / "config.toml", to_toml(config.resolved));
  if (config.job.save_config_file)
    write_file(folder / *config.job.save_config_file, to_json(config.resolved, 2) + "\n");
}

}  // namespace titan::core
