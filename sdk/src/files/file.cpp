#include <titan/files/file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <titan/error.h>

namespace titan {
namespace {

// the kernel moves at most 2 GiB at once
constexpr int64_t kMaxTransfer = int64_t{1} << 30;

[[noreturn]] void fail_with(const std::string& what, const std::filesystem::path& path,
                            int error_number) {
  fail(ErrorKind::io, "cannot ", what, " ", path.string(), ": ",
       std::generic_category().message(error_number));
}

int open_descriptor(const std::filesystem::path& path, int flags, const char* what) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) fail_with(what, path, errno);
  return descriptor;
}

struct stat status_of(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with("ask for the size of", path, errno);
  return status;
}

}  // namespace

File::File(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

File File::open_to_read(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe is refused instead of waited for
  File file(path, open_descriptor(path, O_RDONLY | O_NONBLOCK, "open"));
  TITAN_CHECK(S_ISREG(status_of(file.descriptor_, path).st_mode), io, "cannot read ", path.string(),
              ": it is not a regular file");
  return file;
}

File File::create(const std::filesystem::path& path) {
  return File(path, open_descriptor(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t File::size() const {
  return status_of(descriptor_, path_).st_size;
}

void File::read(int64_t offset, char* out, int64_t bytes) const {
  const int64_t end = offset + bytes;
  while (offset < end) {
    const ssize_t done = ::pread(descriptor_, out, std::min(end - offset, kMaxTransfer), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with("read", path_, errno);
    TITAN_CHECK(done > 0, io, "cannot read ", path_.string(), ": it ends at byte ", offset,
                ", but bytes up to ", end, " are wanted");
    offset += done;
    out += done;
  }
}

void File::expect_read(int64_t offset, int64_t bytes) const {
  ::posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_WILLNEED);
}

void File::write(int64_t offset, const char* data, int64_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = ::pwrite(descriptor_, data, std::min(bytes, kMaxTransfer), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with("write", path_, errno);
    // a regular file takes at least a byte or reports an error
    if (done == 0) fail_with("write", path_, EIO);
    offset += done;
    data += done;
    bytes -= done;
  }
}

void File::sync() const {
  while (::fsync(descriptor_) != 0)
    if (errno != EINTR) fail_with("sync", path_, errno);
}

std::string read_text(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), static_cast<int64_t>(text.size()));
  return text;
}

Value read_json(const std::filesystem::path& path) {
  try {
    return parse_json(read_text(path));
  } catch (Error& e) {
    e.with_context("in " + path.string());
    throw;
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const int descriptor = open_descriptor(path, O_RDONLY | O_DIRECTORY, "open folder");
  int result;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  const int error_number = errno;
  ::close(descriptor);
  // some network file systems report that they cannot sync a folder; that is accepted
  if (result != 0 && error_number != EINVAL && error_number != ENOTSUP)
    fail_with("sync folder", path, error_number);
}

void write_text_atomically(const std::filesystem::path& path, std::string_view text) {
  // unique to this process, so that two writers never share a temporary file
  const std::filesystem::path temporary =
      path.parent_path() /
      ("." + path.filename().string() + "." + std::to_string(::getpid()) + ".tmp");
  try {
    const File file = File::create(temporary);
    file.write(0, text.data(), static_cast<int64_t>(text.size()));
    file.sync();
    rename_file(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail(ErrorKind::io, "cannot rename ", from.string(), " to ", to.string(), ": ",
         std::generic_category().message(errno));
}

}  // namespace titan
