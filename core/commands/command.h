// The commands of `titan`: each has a row in core/commands.cpp, and is either run by it or handed
// over to the program beside it that has it. Those programs have tables of their own, and main.cpp
// dispatches in all of them.
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
  /// `arguments` follow the command's name. Returns the exit code; errors are thrown. Null: the
  /// command is another program's.
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  const char* program = nullptr;  ///< which stands beside this one and has the command
};

/// What a plugin's command that sees torch is handed over to; null in a program that runs it
/// itself.
extern const char* const kProgramWithTorch;
/// What commands of plugins get by their context; a program without torch has no engines.
struct CommandHosts {
  EngineHost* engines = nullptr;
  JobParts* parts = nullptr;
};
CommandHosts command_hosts();

/// In the order in which --help shows them.
const std::vector<CommandRow>& commands();

/// Whether a command is asked for its help rather than to do something.
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
