#include <titan/program/child.h>

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace titan {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Runs in the child; between fork and exec it may call only async-signal-safe functions. Never
/// returns.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         const sigset_t& mask, pid_t parent, int output, int errors, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program, arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

StartedChild start_child(const ChildCommand& command, const sigset_t& mask) {
  PipeEnds output = make_pipe(), errors = make_pipe(), report = make_pipe();
  std::vector<std::string> words{command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const std::vector<char*> arguments = pointers(words), environment = pointers(command.environment);
  const pid_t parent = ::getpid(), child = ::fork();
  TITAN_CHECK(child >= 0, io, "cannot start another process: ", system_message(errno));
  if (child == 0)
    become(command.program.c_str(), arguments.data(), environment.data(), mask, parent,
           output.write_end.get(), errors.write_end.get(), report.write_end.get());
  ::setpgid(child, child);  // parent and child both set it: either may run first
  report.write_end.close();
  int error = 0;
  ssize_t count;
  do count = ::read(report.read_end.get(), &error, sizeof error);
  while (count < 0 && errno == EINTR);
  if (count == sizeof error) {
    ::waitpid(child, nullptr, 0);
    fail(ErrorKind::io, "cannot run '", command.program, "': ", system_message(error));
  }
  for (const Descriptor* end : {&output.read_end, &errors.read_end})
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  return {child, std::move(output.read_end), std::move(errors.read_end)};
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was ended by signal " + std::to_string(signal) + " (" + signal_name(signal) + ")";
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace titan
