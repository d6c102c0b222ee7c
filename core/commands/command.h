// The commands of `titan`: each has a row in core/commands.cpp. The row either has a function to
// run or names another program, in the same folder, to hand the command over to. Those programs
// have their own tables; main.cpp dispatches in all of them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <titan/program/exit_codes.h>

namespace boost::program_options {
class options_description;
}

namespace titan {
class EngineHost;
class JobParts;
class PluginFiles;
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
  /// Its flags, except --help. Set in titan-train, which describes all commands.
  boost::program_options::options_description (*flags)() = nullptr;
  bool takes_job = false;  ///< takes keys of the configuration as well, --section.key VALUE
};

/// Name, usage and summary of each own command, for the tables of `titan` and of titan-train.
namespace rows {
inline constexpr CommandRow kTrain = {
    "train",
    "titan train [--job.config_file FILE] [--dry-run] [--world-size N] [--section.key VALUE]...",
    "train a model"};
inline constexpr CommandRow kEstimate = {
    "estimate",
    "titan estimate [--job.config_file FILE] [--ranks N] [--peak-flops X --bandwidth Y] [--json] "
    "[--section.key VALUE]...",
    "estimate memory, FLOPs and communication of a job"};
inline constexpr CommandRow kList = {"list", "titan list [KIND] [--files] [--path FOLDER]...",
                                     "list the installed plugins"};
inline constexpr CommandRow kDescribe = {
    "describe", "titan describe KIND [NAME] [--json] [--path FOLDER]...",
    "show the options of a plugin or the keys of a section, with defaults and limits"};
}  // namespace rows

/// The row with the function that runs it.
constexpr CommandRow run_by(CommandRow row, int (*run)(const std::vector<std::string>&)) {
  row.run = run;
  return row;
}
/// The row with the program that runs it.
constexpr CommandRow handed_to(CommandRow row, const char* program) {
  row.program = program;
  return row;
}

/// Whether `name` is left out of --help and of suggestions: a command for scripts, "__complete".
inline bool is_hidden(std::string_view name) {
  return name.starts_with("__");
}

/// The program that runs plugin commands which link torch; null in that program itself.
extern const char* const kProgramWithTorch;
/// Services in the context of plugin commands; a program without torch has no engines.
struct CommandHosts {
  EngineHost* engines = nullptr;
  JobParts* parts = nullptr;
  PluginFiles* plugin_files = nullptr;
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
int run_describe(const std::vector<std::string>& arguments,
                 const std::vector<CommandRow>& own_commands);

boost::program_options::options_description flags_of_train();
boost::program_options::options_description flags_of_estimate();
boost::program_options::options_description flags_of_list();
boost::program_options::options_description flags_of_describe();

}  // namespace titan::core
