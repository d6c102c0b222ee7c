#include "stop_request.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::download {
namespace {

std::atomic<int> signal_received{0};
std::atomic<int> event{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(event.load(), &one, sizeof one);
}

extern "C" void handle_download_stop(int signal) {
  const int error_number = errno;
  if (signal_received.exchange(signal) != 0) ::_exit(128 + signal);
  wake();
  errno = error_number;
}

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopRequest::StopRequest() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TITAN_CHECK(descriptor_ >= 0, io, "no file descriptor is left; raise ulimit -n");
  signal_received = 0;
  event = descriptor_;
  install(handle_download_stop);
}

StopRequest::~StopRequest() {
  install(SIG_DFL);
  event = -1;
  ::close(descriptor_);
}

void StopRequest::ask() {
  wake();
}

bool StopRequest::is_asked() const {
  return wait(0);
}

int StopRequest::signal() const {
  return signal_received;
}

bool StopRequest::wait(double seconds) const {
  const double end = monotonic_seconds() + seconds;
  pollfd waited = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  while (true) {
    const double left = end - monotonic_seconds();
    const int ready = ::poll(&waited, 1, left > 0 ? static_cast<int>(left * 1000) + 1 : 0);
    // the event is never read, so that it wakes all waiting threads
    if (ready > 0) return true;
    if (left <= 0) return false;
  }
}

}  // namespace titan::download
