// The commands of the program: each has a file of its own here and one row in commands.cpp.
// main.cpp dispatches.
#pragma once

#include <string>
#include <vector>

namespace titan::core {

/// Exit codes of the program (docs/architecture.md lists them too).
enum ExitCode : int {
  kExitDone = 0,
  kExitRuntimeError = 1,
  kExitConfigError = 2,  ///< usage, configuration
  kExitPluginError = 3,
  kExitRequeue = 75,      ///< SIGTERM or SIGUSR1: a checkpoint is complete, please start again
  kExitTerminated = 143,  ///< SIGTERM or SIGUSR1 without checkpoints: the current step was finished
                          ///< and everything closed
};

struct Command {
  const char* name;
  const char* usage;    ///< "titan list [kind]"
  const char* summary;  ///< one line for `titan --help`
  /// `arguments` follow the command's name. Returns the exit code; errors are thrown.
  int (*run)(const std::vector<std::string>& arguments);
};

/// In the order in which --help shows them.
const std::vector<Command>& commands();

int run_train(const std::vector<std::string>& arguments);
int run_estimate(const std::vector<std::string>& arguments);
int run_launch(const std::vector<std::string>& arguments);
int run_tokenize(const std::vector<std::string>& arguments);
int run_download(const std::vector<std::string>& arguments);
int run_convert(const std::vector<std::string>& arguments);
int run_inspect(const std::vector<std::string>& arguments);
int run_list(const std::vector<std::string>& arguments);
int run_describe(const std::vector<std::string>& arguments);
int run_check(const std::vector<std::string>& arguments);
int run_new_plugin(const std::vector<std::string>& arguments);

}  // namespace titan::core
