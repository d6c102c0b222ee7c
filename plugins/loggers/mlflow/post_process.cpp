// See post_process.h.
#include "post_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <titan/error.h>
#include <titan/program/side_program.h>

namespace titan::loggers {
namespace {

constexpr double kSlack = 5;  // seconds in addition to the request's own timeout

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

bool send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

/// Reads one line; false when `deadline` passes first.
bool receive_line(int socket, double deadline, std::string& line) {
  for (;;) {
    const double left = deadline - seconds_now();
    pollfd ready = {socket, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left * 1000) + 1) < 0) {
      if (left > 0 && errno == EINTR) continue;
      return false;
    }
    if (ready.revents == 0) continue;
    char buffer[65536];
    const ssize_t size = ::recv(socket, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    line.append(buffer, static_cast<size_t>(size));
    if (line.back() == '\n') return true;
  }
}

}  // namespace

PostProcess::PostProcess(std::filesystem::path program) : program_(std::move(program)) {
  if (program_.empty()) program_ = side_program("titan-post");
}

/// The program exits at the end of its input.
PostProcess::~PostProcess() {
  end(is_aborted_ ? SIGKILL : 0);
}

void PostProcess::start() {
  int ends[2];
  TITAN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, io,
              "cannot make a pair of sockets: ", std::generic_category().message(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // a reader of the run's output must not have to wait for this helper to exit
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::string name = program_.string();
  char* words[] = {name.data(), nullptr};
  pid_t process = -1;
  const int reason = ::posix_spawn(&process, name.c_str(), &actions, nullptr, words, ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  const timeval longest = {30, 0};  // for a program that does not read
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  if (reason != 0) ::close(ends[0]);
  TITAN_CHECK(reason == 0, io, "cannot run '", name,
              "', which sends logged values: ", std::generic_category().message(reason),
              "; it is built and installed with titan");
  const std::lock_guard lock(mutex_);
  socket_ = ends[0];
  process_ = process;
}

void PostProcess::end(int signal) noexcept {
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  const pid_t process = std::exchange(process_, -1);
  if (process < 0) return;
  if (signal != 0) ::kill(process, signal);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void PostProcess::abort() noexcept {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
  if (process_ >= 0) ::kill(process_, SIGKILL);
}

HttpAnswer PostProcess::exchange(const std::string& line, double timeout_s) {
  std::string text;
  if (!send_all(socket_, line) || !receive_line(socket_, seconds_now() + timeout_s + kSlack, text))
    return {.problem = "titan-post has ended or does not answer"};
  const Value answer = parse_json(text);
  return {.status = static_cast<int>(answer.at("status").as_integer()),
          .body = answer.at("body").as_string(),
          .problem = answer.at("problem").as_string()};
}

HttpAnswer PostProcess::send(Value request, double timeout_s) {
  request["timeout_s"] = timeout_s;
  if (socket_ < 0) start();
  {
    const std::lock_guard lock(mutex_);
    if (is_aborted_) return {.problem = "it was given up"};
  }
  HttpAnswer answer = exchange(to_json(request) + "\n", timeout_s);
  // a late answer would be taken for that of the next request
  if (answer.status == 0 && answer.problem.starts_with("titan-post")) end(SIGKILL);
  return answer;
}

}  // namespace titan::loggers
