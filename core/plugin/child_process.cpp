#include "core/plugin/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <titan/error.h>

namespace titan::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPipeSize = 64 * 1024;
constexpr size_t kOutputKept = 64 * 1024;
constexpr std::chrono::milliseconds kLongestWait{20};  // between two polls of a silent child

/// Both ends of a pipe; closes what is open.
struct Pipe {
  int read_end = -1, write_end = -1;

  Pipe() {
    int ends[2];
    TITAN_CHECK(::pipe2(ends, O_CLOEXEC) == 0, io,
                "cannot make a pipe: ", std::generic_category().message(errno));
    read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() { close_read(), close_write(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_read() { close_end(read_end); }
  void close_write() { close_end(write_end); }

  /// Appends the bytes that are available, at most a pipe's capacity (so that a child that writes
  /// without end cannot block us); closes the pipe at its end.
  void drain(std::string& into) {
    char buffer[4096];
    for (size_t taken = 0; read_end >= 0 && taken <= kPipeSize; taken += sizeof buffer) {
      const ssize_t count = ::read(read_end, buffer, sizeof buffer);
      if (count > 0)
        into.append(buffer, static_cast<size_t>(count));
      else if (count == 0 || (errno != EINTR && errno != EAGAIN))
        close_read();
      else if (errno == EAGAIN)
        return;
    }
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

/// Prepares the child before `body`: its own process group, killed when its parent dies, no core
/// file, empty standard input.
void settle_in(const Pipe& output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output.write_end, STDOUT_FILENO);
  ::dup2(output.write_end, STDERR_FILENO);
}

/// Waits until the child has ended or `limit` has passed, and reads its output meanwhile.
void follow(pid_t child, Pipe& records, Pipe& output, Clock::time_point limit, ChildEnd& end) {
  for (bool has_ended = false;;) {
    records.drain(end.records);
    output.drain(end.output);
    if (end.output.size() > 2 * kOutputKept) end.output.erase(0, end.output.size() - kOutputKept);
    if (has_ended) return;
    const pid_t ended = ::waitpid(child, &end.status, WNOHANG);
    has_ended = ended == child || (ended < 0 && errno != EINTR);
    if (has_ended) continue;  // once more for its last output
    if (Clock::now() >= limit && !end.was_killed_for_time) {
      end.was_killed_for_time = true;
      if (::kill(-child, SIGKILL) != 0) ::kill(child, SIGKILL);
    }
    pollfd ends[] = {{records.read_end, POLLIN, 0}, {output.read_end, POLLIN, 0}};
    ::poll(ends, 2, static_cast<int>(kLongestWait.count()));
  }
}

}  // namespace

ChildEnd run_forked(
    const std::function<void(const std::function<void(std::string_view)>& report)>& body,
    std::chrono::milliseconds limit) {
  Pipe records, output;
  std::fflush(nullptr);  // else the child would print the parent's buffers again
  const pid_t child = ::fork();
  TITAN_CHECK(child >= 0, io,
              "cannot make a child process: ", std::generic_category().message(errno));
  if (child == 0) {
    settle_in(output);
    body([&](std::string_view bytes) { write_all(records.write_end, bytes); });
    std::fflush(nullptr);
    ::_exit(0);
  }
  ::setpgid(child, child);  // parent and child both set it: either may run first
  records.close_write();
  output.close_write();
  for (const int end : {records.read_end, output.read_end})
    ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
  ChildEnd end;
  follow(child, records, output, Clock::now() + limit, end);
  return end;
}

}  // namespace titan::core
