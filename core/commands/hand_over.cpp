#include "core/commands/hand_over.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <titan/error.h>

#include "core/base/terminal.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// As execv takes them; `words` outlives the result.
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

/// What the build says goes to standard error: standard output is the command's own.
bool builds(const fs::path& tree, const std::string& program) {
  print_to_errors("building " + program + ", which this build tree does not hold yet\n");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::vector<std::string> words = {"cmake", "--build", tree.string(), "--target",
                                      target_of(program)};
    ::execvp("cmake", pointers(words).data());
    ::_exit(127);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return child > 0 && status == 0;
}

}  // namespace

void hand_over(const std::string& program, const std::vector<std::string>& arguments) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path file = folder / program, tree = folder.parent_path();
  const bool is_build_tree = fs::exists(tree / "CMakeCache.txt");
  if (!fs::exists(file) && is_build_tree)
    TITAN_CHECK(builds(tree, program), io, "cannot build ", program, "; try: cmake --build ",
                tree.string(), " --target ", target_of(program));
  std::vector<std::string> words = {file.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ::execv(file.c_str(), pointers(words).data());
  fail(ErrorKind::io, "cannot run ", file.string(), ": ", std::generic_category().message(errno),
       "; it is installed with titan");
}

}  // namespace titan::core
