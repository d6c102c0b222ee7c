// See input_file.h.
#include "plugins/datasets/common/input_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <titan/error.h>

namespace titan::datasets {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

}  // namespace

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: a pipe is refused instead of waited for
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  TITAN_CHECK(descriptor >= 0, io, "cannot open '", path_.string(), "': ", reason(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(ErrorKind::io, "cannot read '", path_.string(), "': it is not a regular file");
  }
  descriptor_ = descriptor;
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (is_open()) ::close(descriptor_);
}

size_t InputFile::read_some(uint64_t offset, char* buffer, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor_, buffer + done, count - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) done += static_cast<size_t>(got);
    TITAN_CHECK(got > 0 || errno == EINTR, io, "cannot read '", path_.string(), "' at byte ",
                offset + done, ": ", reason(errno));
  }
  return done;
}

void InputFile::read(uint64_t begin, uint64_t end, char* bytes) const {
  const size_t count = end - begin;
  TITAN_CHECK(read_some(begin, bytes, count) == count, io, "'", path_.string(),
              "' has become shorter than the ", size_,
              " bytes it had when the data set was opened");
}

void InputFile::read(uint64_t begin, uint64_t end, std::string& bytes) const {
  bytes.resize(end - begin);
  read(begin, end, bytes.data());
}

void InputFile::will_be_read_in_order() const {
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

}  // namespace titan::datasets
