#include "core/tokenize/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <titan/error.h>

namespace titan::core {
namespace {

constexpr size_t kLargeWrite = size_t{1} << 20;
constexpr size_t kMaxTransfer = size_t{1} << 30;  // the kernel moves at most 2 GiB at once

[[noreturn]] void fail_with(const char* what, const std::filesystem::path& path, int error_number) {
  fail(ErrorKind::io, "cannot ", what, " ", path.string(), ": ",
       std::generic_category().message(error_number));
}

}  // namespace

PartFile::PartFile(std::filesystem::path path) : path_(std::move(path)) {
  do descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail_with("open", path_, errno);
  struct stat status {};
  const bool is_known = ::fstat(descriptor_, &status) == 0;
  if (!is_known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(ErrorKind::io, "cannot write ", path_.string(), ": it is not a regular file");
  }
  size_ = status.st_size;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      waiting_(std::move(other.waiting_)) {}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartFile::truncate(int64_t size) {
  waiting_.clear();
  int result;
  do result = ::ftruncate(descriptor_, size);
  while (result != 0 && errno == EINTR);
  if (result != 0) fail_with("shorten", path_, errno);
  size_ = size;
}

void PartFile::append(std::string_view bytes) {
  if (waiting_.size() + bytes.size() < kLargeWrite) {
    waiting_ += bytes;
    return;
  }
  flush();
  write(bytes);
}

void PartFile::flush() {
  write(waiting_);
  waiting_.clear();
}

void PartFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMaxTransfer), size_);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_with("write", path_, done < 0 ? errno : EIO);
    size_ += done;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void PartFile::sync() {
  flush();
  while (::fsync(descriptor_) != 0)
    if (errno != EINTR) fail_with("sync", path_, errno);
}

bool PartFile::lock() {
  int result;
  do result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  // a file system without locks does not keep anybody out
  return result == 0 || errno != EWOULDBLOCK;
}

bool PartFile::is_linked() const {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace titan::core
