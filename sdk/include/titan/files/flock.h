// The lock of flock(2) on an open file. Used by whatever keeps a second process out.
#pragma once

#include <sys/file.h>

#include <cerrno>

namespace titan {

/// Takes it without waiting. False, with errno set: EWOULDBLOCK where another process has it,
/// something else where the file system has no locks.
inline bool try_flock(int descriptor) {
  int result;
  do result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace titan
