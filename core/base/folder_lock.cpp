#include "core/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/value.h>

#include "core/base/clock.h"

namespace titan::core {
namespace {

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::string time_of_day(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  ::localtime_r(&time, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

/// "process 17 on host a, since 2026-01-01 10:00:00"
std::string holder_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  try {
    const Value value = parse_json(text);
    return "process " + std::to_string(value.at("pid").as_integer()) + " on host " +
           value.at("host").as_string() + ", since " + time_of_day(value.at("time").as_number());
  } catch (const Error&) {
    return "a process that has not said yet which it is";
  }
}

bool try_flock(int file) {
  int result;
  do result = ::flock(file, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

void write_holder(int file, const std::filesystem::path& path) {
  const std::string text = to_json(Value::map({{"host", own_host()},
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
    return;  // none has run here, or no folder is there
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
