#pragma once

#include <cerrno>
#include <system_error>

namespace titan::cpu {

/// Throws the error of the system call `what`, from errno.
[[noreturn]] inline void fail_with_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace titan::cpu
