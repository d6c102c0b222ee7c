#include "signing_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <titan/error.h>
#include <titan/program/child.h>

namespace titan::plugin_index {
namespace {

/// The program gets this terminal, so that it can ask for a password.
void run_minisign(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "minisign");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, "minisign", &actions, nullptr, words.data(), ::environ);
  posix_spawn_file_actions_destroy(&actions);
  TITAN_CHECK(error == 0, io,
              "cannot start minisign, which signs the files: ", std::strerror(error),
              "; install it: apt-get install minisign");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  TITAN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, io, "minisign ", how_it_ended(status),
              "; its message is above");
}

}  // namespace

void sign_file(const std::filesystem::path& file, const std::filesystem::path& secret_key,
               const std::string& comment, const std::filesystem::path& output) {
  run_minisign({"-S", "-H", "-s", secret_key.string(), "-m", file.string(), "-x", output.string(),
                "-c", "signed by titan plugin pack", "-t", comment});
}

void write_public_key(const std::filesystem::path& secret_key,
                      const std::filesystem::path& output) {
  run_minisign({"-R", "-f", "-s", secret_key.string(), "-p", output.string()});
}

}  // namespace titan::plugin_index
