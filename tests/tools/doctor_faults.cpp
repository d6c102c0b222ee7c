// Preloaded by doctor_test.py: calls of the C library that fail as on other machines. TITAN_FAULT
// names the fault.
#include <dlfcn.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is(const char* fault) {
  const char* chosen = std::getenv("TITAN_FAULT");
  return chosen && std::strcmp(chosen, fault) == 0;
}

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" int flock(int file, int operation) noexcept {
  if (is("no locks")) return failed(ENOLCK);
  if (is("locks without effect")) return 0;
  return real(&::flock, "flock")(file, operation);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  return is("no rename") ? failed(EXDEV) : real(&::rename, "rename")(from, to);
}

extern "C" int fsync(int file) {
  return is("no fsync") ? failed(EIO) : real(&::fsync, "fsync")(file);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real(&::clock_gettime, "clock_gettime")(clock, time);
  if (clock == CLOCK_REALTIME && is("old clock")) time->tv_sec -= 5 * 365 * 86400;
  if (clock == CLOCK_REALTIME && is("slow clock")) time->tv_sec -= 60;
  return result;
}
