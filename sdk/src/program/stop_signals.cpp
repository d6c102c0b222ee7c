#include <titan/program/stop_signals.h>

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstring>

#include <titan/error.h>
#include <titan/program/stop_request.h>
#include <titan/status_line.h>

namespace titan {
namespace {

std::atomic<int> asked_by{0};
std::atomic<bool> first_ends{false};
std::atomic<bool> wants_record{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void write_errors(const char* text) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
}

/// Replaces the status line; without one, writes a line of its own.
void say(const char* line) {
  const char* const eraser = StatusLine::eraser();
  write_errors(*eraser ? eraser : "\n");
  write_errors(line);
}

/// SIGUSR1 announces the end: the signal after it is the first request to stop.
extern "C" void handle_stop(int signal) {
  const int before = asked_by.load();
  if (signal == SIGUSR1 && before != 0) return;
  if (before == SIGINT || before == SIGTERM) {
    write_errors(StatusLine::eraser());
    ::_exit(128 + signal);
  }
  if (first_ends && signal != SIGUSR1) {
    say("stopped before the first step\n");
    ::_exit(128 + signal);
  }
  asked_by = signal;
  say("stopping after this step; a second signal stops at once\n");
}

extern "C" void handle_record_request(int) {
  wants_record = true;
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(First first) {
  asked_by = 0;
  first_ends = first == First::ends;
  install(SIGINT, handle_stop);
  install(SIGTERM, handle_stop);
  install(SIGUSR1, handle_stop);
  install(SIGUSR2, handle_record_request);
}

StopSignals::~StopSignals() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
  install(SIGUSR1, SIG_DFL);
  install(SIGUSR2, SIG_DFL);
}

void StopSignals::begin_to_ask() {
  first_ends = false;
}

int StopSignals::received() {
  return asked_by;
}

void request_stop(int exit_code) {
  TITAN_ASSERT(exit_code > 0 && exit_code < 128, "a stop was requested with exit code ", exit_code);
  int none = 0;
  asked_by.compare_exchange_strong(none, kStopRequest + exit_code);
}

bool StopSignals::take_record_request() {
  return wants_record.exchange(false);
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace titan
