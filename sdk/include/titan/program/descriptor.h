// A file descriptor that closes itself, and pipes. Used by code that starts programs.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <titan/error.h>

#include <titan/export.h>

namespace titan {

class TITAN_API Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// The text of an errno value: "No such file or directory".
inline std::string system_message(int error) {
  return std::generic_category().message(error);
}

struct PipeEnds {
  Descriptor read_end, write_end;
};

/// Both ends are closed by exec.
inline PipeEnds make_pipe() {
  int ends[2];
  TITAN_CHECK(::pipe2(ends, O_CLOEXEC) == 0, io, "cannot make a pipe: ", system_message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace titan
