#include <titan/files/growing_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/files/flock.h>

namespace titan {
namespace {

constexpr size_t kLargeWrite = size_t{1} << 20;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // the kernel moves at most 2 GiB at once

[[noreturn]] void fail_growing(const char* what, const std::filesystem::path& path,
                               int error_number) {
  fail(ErrorKind::io, "cannot ", what, " ", path.string(), ": ",
       std::generic_category().message(error_number));
}

}  // namespace

GrowingFile::GrowingFile(std::filesystem::path path, Links links)
    : path_(std::move(path)), links_(links) {
  const int extra = links == Links::refuse ? O_NOFOLLOW : 0;
  // O_NONBLOCK: does not wait at a pipe
  do descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | extra, 0666);
  while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail_growing("open", path_, errno);
  struct stat status {};
  const bool is_known = ::fstat(descriptor_, &status) == 0;
  if (!is_known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(ErrorKind::io, "cannot write ", path_.string(), ": it is not a regular file");
  }
  size_ = status.st_size;
}

GrowingFile::GrowingFile(GrowingFile&& other) noexcept
    : path_(std::move(other.path_)),
      links_(other.links_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      waiting_(std::move(other.waiting_)) {}

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GrowingFile::truncate(int64_t size) {
  waiting_.clear();
  int result;
  do result = ::ftruncate(descriptor_, size);
  while (result != 0 && errno == EINTR);
  if (result != 0) fail_growing("shorten", path_, errno);
  size_ = size;
}

void GrowingFile::append(std::string_view bytes) {
  if (waiting_.size() + bytes.size() < kLargeWrite) {
    waiting_ += bytes;
    return;
  }
  write(bytes);
}

void GrowingFile::flush() {
  put(waiting_);
  waiting_.clear();
}

void GrowingFile::write(std::string_view bytes) {
  flush();
  put(bytes);
}

void GrowingFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce), size_);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_growing("write", path_, done < 0 ? errno : EIO);
    size_ += done;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void GrowingFile::read(int64_t offset, char* out, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = ::pread(descriptor_, out, std::min(bytes, kMostAtOnce), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_growing("read", path_, done < 0 ? errno : EIO);
    offset += done;
    out += done;
    bytes -= static_cast<size_t>(done);
  }
}

void GrowingFile::sync() {
  flush();
  while (::fsync(descriptor_) != 0)
    if (errno != EINTR) fail_growing("sync", path_, errno);
}

bool GrowingFile::lock() {
  // a file system without locks excludes no other process
  if (!try_flock(descriptor_) && errno == EWOULDBLOCK) return false;
  // the previous holder may have written since this was opened
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_growing("ask for the size of", path_, errno);
  size_ = status.st_size;
  return true;
}

bool GrowingFile::is_linked() const {
  struct stat opened {
  }, named{};
  const int found =
      links_ == Links::refuse ? ::lstat(path_.c_str(), &named) : ::stat(path_.c_str(), &named);
  return found == 0 && ::fstat(descriptor_, &opened) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace titan
