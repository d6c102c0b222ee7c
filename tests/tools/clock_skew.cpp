// Preloaded by replicas_test.py: the wall clock of a process is TITAN_CLOCK_SKEW seconds ahead of
// the kernel's.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

time_t skew() {
  static const time_t seconds = [] {
    const char* text = std::getenv("TITAN_CLOCK_SKEW");
    return text ? static_cast<time_t>(std::atoll(text)) : 0;
  }();
  return seconds;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* result) noexcept {
  const auto status = static_cast<int>(::syscall(SYS_clock_gettime, clock, result));
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    result->tv_sec += skew();
  return status;
}

int gettimeofday(timeval* __restrict result, void* __restrict) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  result->tv_sec = now.tv_sec;
  result->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
