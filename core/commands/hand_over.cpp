#include "core/commands/hand_over.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <titan/error.h>
#include <titan/program/installation.h>
#include <titan/program/terminal.h>

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// The argv of execv; `words` outlives the result.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::string target_of(std::string program) {
  for (char& c : program)
    if (c == '-') c = '_';
  return program;
}

fs::path own_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path();
}
fs::path own_tree() {
  return installation_folder();
}

/// Takes the lock that tools/setup.sh takes as well, because two concurrent builds in one tree
/// damage ninja's log. exec releases it.
void wait_for_other_builds(const fs::path& tree) {
  fs::path lock = tree.parent_path() / ".setup.lock";
  if (!fs::exists(lock)) lock = tree / ".build.lock";
  const int file = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;  // the tree is not writable: the build reports that
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return;
  print_to_errors("another build is running in this tree; waiting for it\n");
  while (::flock(file, LOCK_EX) < 0 && errno == EINTR) {
  }
}

/// The build's output goes to standard error; standard output belongs to the command.
bool builds(const fs::path& tree, const std::string& target) {
  print_to_errors("building " + target + ", which is not built in this build tree yet\n");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::vector<std::string> words = {"cmake", "--build", tree.string(), "--target",
                                      target_of(target)};
    ::execvp("cmake", pointers(words).data());
    ::_exit(127);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return child > 0 && status == 0;
}

}  // namespace

fs::path program_beside(const std::string& program) {
  return own_folder() / program;
}

bool needs_build(const std::string& program) {
  return !fs::exists(program_beside(program)) && fs::exists(own_tree() / "CMakeCache.txt");
}

std::string build_command(const std::string& target) {
  return "cmake --build " + own_tree().string() + " --target " + target_of(target);
}

std::string help_before_build(const std::string& usage, const std::string& summary,
                              const std::string& what, const std::string& target) {
  return "usage: " + usage + "\n\n" + summary + "\n\n" + what +
         " lists the options, but is not built yet. Build it with:\n  " + build_command(target) +
         "\n";
}

void build_missing(const std::string& target, const std::function<bool()>& is_there) {
  const fs::path tree = own_tree();
  wait_for_other_builds(tree);
  TITAN_CHECK(is_there() || (builds(tree, target) && is_there()), io, "cannot build ", target,
              "; try: ", build_command(target));
}

void hand_over(const std::string& program, const std::string& command,
               const std::vector<std::string>& arguments) {
  const fs::path file = program_beside(program);
  if (needs_build(program)) build_missing(program, [&] { return !needs_build(program); });
  std::error_code error;
  TITAN_CHECK(fs::exists(file, error), io, "cannot run ", file.string(),
              ": there is no such file; it is installed with titan");
  std::vector<std::string> words = {file.string(), command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables =
      environment_with_torch(installation_folder(), Environment::of_process());
  ::execve(file.c_str(), pointers(words).data(), pointers(variables).data());
  fail(ErrorKind::io, "cannot run ", file.string(), ": ", std::generic_category().message(errno));
}

}  // namespace titan::core
