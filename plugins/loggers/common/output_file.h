// A file to which loggers append complete records. Header only, so that several loggers linked into
// one program share it.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <titan/error.h>

namespace titan::loggers {

/// Unbuffered: append() returns after the bytes are in the file, so a killed run loses no logged
/// step. Every failure throws an io Error that names the file and the reason. One thread at a time.
class OutputFile {
 public:
  enum class Mode {
    truncate,    ///< starts empty
    append,      ///< keeps the contents
    create_new,  ///< throws when the file exists
  };

  /// Closed: append() must not be called.
  OutputFile() = default;
  OutputFile(const std::filesystem::path& path, Mode mode) : name_("'" + path.string() + "'") {
    // O_APPEND in every mode: after a failed write was truncated away, the next one goes to the new
    // end
    constexpr int kCommon = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    constexpr int kOfMode[] = {O_TRUNC, 0, O_EXCL};
    // a pipe without a reader fails instead of blocking
    descriptor_ =
        ::open(path.c_str(), kCommon | O_NONBLOCK | kOfMode[static_cast<int>(mode)], 0666);
    if (descriptor_ < 0) fail_with("cannot open ", errno);
    ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
    owned_ = true;
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
  }
  /// Writes to a descriptor that the caller closes, such as 1 = standard output.
  static OutputFile borrow(int descriptor, std::string name) {
    OutputFile file;
    file.descriptor_ = descriptor;
    file.name_ = std::move(name);
    return file;
  }
  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OutputFile() {
    if (owned_) ::close(descriptor_);
  }

  /// Writes all of `bytes`. On failure, truncates an owned regular file to its last complete
  /// record.
  void append(std::string_view bytes) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
      if (written >= 0) {
        rest.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        const int reason = errno;
        if (owned_ && rest.size() < bytes.size()) {
          // Readers must ignore a record that stays incomplete. The first error is the one to
          // report.
          [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, size_);
        }
        fail_with("cannot write to ", reason);
      }
    }
    size_ += static_cast<off_t>(bytes.size());
  }

  /// Some file systems report a failed write only here.
  void close() {
    if (!owned_) return;
    owned_ = false;
    if (::close(descriptor_) != 0) fail_with("cannot close ", errno);
  }

 private:
  void swap(OutputFile& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(owned_, other.owned_);
    std::swap(size_, other.size_);
    std::swap(name_, other.name_);
  }
  [[noreturn]] void fail_with(const char* action, int reason) const {
    fail(ErrorKind::io, action, name_, ": ", std::generic_category().message(reason), " (errno ",
         reason, ")");
  }

  int descriptor_ = -1;
  bool owned_ = false;
  off_t size_ = 0;
  std::string name_;
};

}  // namespace titan::loggers
