// argv -> command, in `titan` and in the programs that it hands commands over to. The only place
// that turns errors into exit codes.
#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/program/installation.h>
#include <titan/program/terminal.h>
#include <titan/program/text_table.h>
#include <titan/settings/diagnostics.h>
#include <titan/shown_text.h>
#include <titan/suggest.h>

#include <titan/program/error_file.h>
#include "core/commands/command.h"
#include "core/commands/hand_over.h"
#include "core/commands/plugin_command.h"
#include "core/runtime/build_info.h"

namespace {

using titan::core::CommandRow;
using titan::core::NamedCommand;

/// The program's own commands in the order of their table, then those of plugins by name; hidden
/// ones are left out.
std::vector<NamedCommand> all_commands() {
  std::vector<NamedCommand> all;
  for (const CommandRow& row : titan::core::commands()) all.push_back({row.name, row.summary});
  for (NamedCommand& command : titan::core::commands_of_plugins())
    if (!titan::core::is_hidden(command.name)) all.push_back(std::move(command));
  return all;
}

std::string usage() {
  std::vector<titan::TextRow> rows;
  for (const NamedCommand& command : all_commands())
    rows.push_back({command.name, command.summary});
  return "usage: titan COMMAND [ARGUMENT]...\n\n" + titan::text_table(rows, "  ") +
         "\nRun 'titan help COMMAND' for details, 'titan --version' for the build, and\n"
         "'titan --cmake-prefix' for the folder that -DTitan_ROOT of a plugin takes.\n";
}

int exit_code(const titan::Error& error) {
  switch (error.kind()) {
    case titan::ErrorKind::config:
      return titan::kExitConfigError;
    case titan::ErrorKind::plugin:
      return titan::kExitPluginError;
    default:
      return titan::kExitRuntimeError;
  }
}

/// Replaces `-h` by `--help`, except as the value of a flag or after `--`, where it belongs to
/// another command.
std::vector<std::string> with_long_help(std::vector<std::string> arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i)
    if (arguments[i] == "-h" && (i == 0 || !arguments[i - 1].starts_with("--")))
      arguments[i] = "--help";
  return arguments;
}

int refuse(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedCommand& command : all_commands()) names.push_back(command.name);
  const std::string hint = titan::did_you_mean(name, names);
  titan::print_error("unknown command " + titan::in_quotes(name) +
                     (hint.empty() ? "" : "; " + hint));
  titan::print_to_errors(hint.empty() ? "\n" + usage() : "see: titan --help\n");
  return titan::kExitConfigError;
}

int run(const CommandRow& row, const std::vector<std::string>& arguments) {
  if (!row.program) return row.run(arguments);
  if (titan::core::asks_for_help(arguments) && titan::core::needs_build(row.program)) {
    titan::print(titan::core::help_before_build(row.usage, row.summary, row.program, row.program));
    return titan::kExitDone;
  }
  titan::core::hand_over(row.program, row.name, arguments);
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) {
    titan::print_to_errors(usage());
    return titan::kExitConfigError;
  }
  const std::string& name = words.front();
  std::vector<std::string> arguments =
      with_long_help(std::vector<std::string>(words.begin() + 1, words.end()));
  if (name == "help" && !arguments.empty() && arguments.front() != "--help")
    return dispatch({arguments.front(), "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    titan::print(usage());
    return titan::kExitDone;
  }
  if (name == "--cmake-prefix") {
    titan::print(titan::installation_folder().string() + "\n");
    return titan::kExitDone;
  }
  if (name == "--version") {
    titan::print(titan::core::build_summary() + "\n");
    return titan::kExitDone;
  }
  for (const CommandRow& row : titan::core::commands())
    if (name == row.name) return run(row, arguments);
  if (const auto code = titan::core::run_plugin_command(
          name, arguments, titan::core::kProgramWithTorch, titan::core::command_hosts()))
    return *code;
  return refuse(name);
}

/// The report on a wrong configuration; it refers to the help of `command`.
std::string report_of(const titan::ConfigError& error, const std::string& command) {
  const std::string report = error.diagnostics().report();
  // with added context: unchanged
  return error.what() == report ? error.diagnostics().report("titan " + command + " --help")
                                : error.what();
}

}  // namespace

int main(int argc, char** argv) {
  titan::restore_library_path();
  // a closed pipe and a file over its size limit become write errors of the logger or the
  // checkpoint; neither signal ends the process silently
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  titan::print_whole_lines();
  try {
    return dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const titan::Error& e) {
    // each diagnostic of a report begins with "error:" already
    if (const auto* wrong = dynamic_cast<const titan::ConfigError*>(&e))
      titan::print_to_errors(report_of(*wrong, argv[1]) + "\n");
    else
      titan::print_error(e.what());
    titan::write_error_file(e.what(), "");
    return exit_code(e);
  } catch (const std::exception& e) {
    titan::print_error(e.what());
    titan::write_error_file(e.what(), "");
    return titan::kExitRuntimeError;
  }
}
