// The lock of flock(2) on an open file. Used to keep a second process out of a folder or file.
#pragma once

#include <sys/file.h>

#include <cerrno>

namespace titan {

/// Takes the lock without waiting: LOCK_EX, or LOCK_SH for one that several processes may have.
/// Returns false and sets errno if that fails: EWOULDBLOCK if another process has a lock that
/// excludes it, another value if the file system has no locks.
inline bool try_flock(int descriptor, int kind = LOCK_EX) {
  int result;
  do result = ::flock(descriptor, kind | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace titan
