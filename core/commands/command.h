// The commands of `titan`: each has a row in core/commands.cpp. The row either has a function to
// run or names another program, in the same folder, to hand the command over to. Those programs
// have their own tables; main.cpp dispatches in all of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <titan/program/exit_codes.h>

namespace titan {
class EngineHost;
class JobParts;
}  // namespace titan

namespace titan::core {

struct CommandRow {
  const char* name;
  const char* usage;    ///< "titan list [kind]"
  const char* summary;  ///< one line for `titan --help`
  /// `arguments` follow the command's name. Returns the exit code; errors are thrown. Null:
  /// `program` runs the command.
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  const char* program = nullptr;  ///< in this program's folder, for a null `run`
};

/// The program that runs plugin commands which link torch; null in that program itself.
extern const char* const kProgramWithTorch;
/// Services in the context of plugin commands; a program without torch has no engines.
struct CommandHosts {
  EngineHost* engines = nullptr;
  JobParts* parts = nullptr;
};
CommandHosts command_hosts();

/// In the order in which --help shows them.
const std::vector<CommandRow>& commands();

/// Whether the arguments of a command ask for its help.
inline bool asks_for_help(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

int run_train(const std::vector<std::string>& arguments);
int run_estimate(const std::vector<std::string>& arguments);
int run_list(const std::vector<std::string>& arguments);
int run_describe(const std::vector<std::string>& arguments);
int run_check(const std::vector<std::string>& arguments);
int run_new_plugin(const std::vector<std::string>& arguments);

}  // namespace titan::core
