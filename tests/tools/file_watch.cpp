// A library for LD_PRELOAD: logs the program's writes, syncs and renames below the folder
// TITAN_WATCH_FOLDER, one line per call in order, in the file TITAN_WATCH_LOG. Child processes
// append to the same file. The order shows which files survive a power failure.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_watched(std::string_view path) {
  const char* folder = std::getenv("TITAN_WATCH_FOLDER");
  return folder && path.starts_with(folder);
}

void note(const std::string& line) {
  const char* log = std::getenv("TITAN_WATCH_LOG");
  if (!log) return;
  const int file = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 || ::syscall(SYS_write, file, line.data(), line.size()) < 0) std::abort();
  ::close(file);
}

void note_file(const char* call, int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  if (length <= 0) return;
  const std::string_view name(path, static_cast<size_t>(length));
  if (is_watched(name)) note(call + std::string("\t") + std::string(name) + "\n");
}

// Writes and renames are logged before they happen, syncs when they are done. So with any threads,
// a sync logged before a rename was on the disk before it.
template <class Sync>
int noted_sync(Sync* sync, int file) {
  const int result = sync(file);
  if (result == 0) note_file("sync", file);
  return result;
}

void note_rename(const char* from, const char* to) {
  if (is_watched(to)) note(std::string("rename\t") + from + "\t" + to + "\n");
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  note_file("write", file);
  return real(file, data, size);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  note_file("write", file);
  return real(file, data, size, offset);
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  note_file("write", file);
  return real(file, data, size, offset);
}

int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  return noted_sync(real, file);
}

int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return noted_sync(real, file);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  note_rename(from, to);
  return real(from, to);
}

}  // extern "C"
