#include "child_output.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <titan/program/clock.h>

namespace titan::commands {
namespace {

/// Reads the available bytes; false at the end of the stream.
bool take(const Descriptor& from, size_t most_bytes, std::string& into) {
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t count = ::read(from.get(), block.data(), block.size());
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    into.append(block.data(), static_cast<size_t>(count));
    if (into.size() > most_bytes) into.erase(0, into.size() - most_bytes / 2);
  }
}

}  // namespace

std::vector<std::string> environment_of_process() {
  std::vector<std::string> all;
  for (char** entry = ::environ; entry && *entry; ++entry) all.emplace_back(*entry);
  return all;
}

ChildOutput output_of(const ChildCommand& command, const sigset_t& mask, double seconds,
                      size_t most_bytes) {
  ChildOutput result;
  const double end = monotonic_seconds() + seconds;
  const StartedChild child = start_child(command, mask);
  bool has_output = true, has_errors = true, has_ended = false;
  while (!has_ended) {
    std::array<pollfd, 2> polled = {pollfd{has_output ? child.output.get() : -1, POLLIN, 0},
                                    pollfd{has_errors ? child.errors.get() : -1, POLLIN, 0}};
    ::poll(polled.data(), polled.size(), has_output || has_errors ? 50 : 1);
    if (has_output) has_output = take(child.output, most_bytes, result.out);
    if (has_errors) has_errors = take(child.errors, most_bytes, result.errors);
    has_ended = ::waitpid(child.pid, &result.status, WNOHANG) == child.pid;
    if (!has_ended && monotonic_seconds() > end) {
      result.is_late = true;
      ::kill(-child.pid, SIGKILL);
      ::waitpid(child.pid, &result.status, 0);
      has_ended = true;
    }
  }
  ::kill(-child.pid, SIGKILL);  // processes that the program left behind
  if (has_output) take(child.output, most_bytes, result.out);
  if (has_errors) take(child.errors, most_bytes, result.errors);
  return result;
}

ChildOutput output_of(const std::filesystem::path& program, std::vector<std::string> arguments,
                      double seconds, std::vector<std::string> environment) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  return output_of({.program = program.string(),
                    .arguments = std::move(arguments),
                    .environment = std::move(environment)},
                   mask, seconds);
}

}  // namespace titan::commands
