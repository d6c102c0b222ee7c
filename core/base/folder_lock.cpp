#include "core/base/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/flock.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/host.h>
#include <titan/value.h>

namespace titan::core {
namespace {

/// "process 17 on host a, since 2026-01-01 10:00:00"
std::string holder_of(const std::filesystem::path& path) {
  try {
    const Value value = read_json(path);
    return "process " + std::to_string(value.at("pid").as_integer()) + " on host " +
           value.at("host").as_string() + ", since " +
           local_time_text(value.at("time").as_number(), "%Y-%m-%d %H:%M:%S");
  } catch (const Error&) {
    return "a process that has not written its id yet";
  }
}

void write_holder(int file, const std::filesystem::path& path) {
  const std::string host = host_name();
  const std::string text = to_json(Value::map({{"host", host.empty() ? "an unknown host" : host},
                                               {"pid", static_cast<int64_t>(::getpid())},
                                               {"time", wall_seconds()}})) +
                           "\n";
  const bool is_written =
      ::ftruncate(file, 0) == 0 &&
      ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  TITAN_CHECK(is_written, io, "cannot write '", path.string(), "': ", std::strerror(errno));
}

}  // namespace

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

void FolderLock::take(const std::filesystem::path& folder, const std::string& key) {
  lock(folder, key, O_CREAT);
}

void FolderLock::take_existing(const std::filesystem::path& folder, const std::string& key) {
  lock(folder, key, 0);
}

void FolderLock::lock(const std::filesystem::path& folder, const std::string& key, int flags) {
  if (file_ >= 0) return;
  const std::filesystem::path path = folder / "run.lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
  if (file < 0 && flags == 0 && errno != EACCES)
    return;  // no run has used the folder, or it does not exist
  TITAN_CHECK(file >= 0, io, "cannot open '", path.string(), "': ", std::strerror(errno));
  if (!try_flock(file)) {
    const int reason = errno;
    if (reason == EWOULDBLOCK) {
      ::close(file);
      fail(ErrorKind::config, key, ": the folder '", folder.string(),
           "' is in use by another run (", holder_of(path),
           "); end that run, or choose another folder");
    }
    log::warn("the file system of '" + folder.string() + "' has no locks (" +
              std::strerror(reason) +
              "): a second run in this folder would not be noticed, and both would overwrite each "
              "other's files");
  }
  file_ = file;
  write_holder(file_, path);
}

}  // namespace titan::core
