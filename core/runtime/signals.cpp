#include "core/runtime/signals.h"

#include <unistd.h>
#include <atomic>
#include <csignal>

namespace titan::core {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void handle_stop(int signal) {
  int expected = 0;
  if (first_signal.compare_exchange_strong(expected, signal)) {
    constexpr char kText[] = "\nstopping after this step; once more stops at once\n";
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    return;
  }
  ::_exit(128 + signal);
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  install(SIGINT, handle_stop);
  install(SIGTERM, handle_stop);
}

StopSignals::~StopSignals() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
}

int StopSignals::received() {
  return first_signal;
}

}  // namespace titan::core
