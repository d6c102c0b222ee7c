// argv -> command, in `titan` and in the programs that it hands commands over to. The only place
// that turns errors into exit codes.
#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/base/terminal.h"
#include "core/commands/command.h"
#include "core/commands/hand_over.h"
#include "core/config/diagnostics.h"
#include "core/runtime/build_info.h"
#include "core/runtime/error_file.h"

namespace {

using titan::core::Command;

std::string usage() {
  std::string text = "usage: titan COMMAND [ARGUMENT]...\n\n";
  for (const Command& command : titan::core::commands()) {
    constexpr size_t kWidth = 11;
    std::string name = command.name;
    name.resize(std::max(name.size(), kWidth), ' ');
    text += "  " + name + " " + command.summary + "\n";
  }
  return text + "\ntitan COMMAND --help tells more; titan --version names the build\n";
}

/// What is known of a command before its program is built: help never starts a build.
std::string help_without_program(const Command& command) {
  return std::string("usage: ") + command.usage + "\n\n" + command.summary + "\n\n" +
         command.program + " is not built yet, and it lists the options. Build it with:\n  " +
         titan::core::build_command(command.program) + "\n";
}

int exit_code(const titan::Error& error) {
  switch (error.kind()) {
    case titan::ErrorKind::config:
      return titan::core::kExitConfigError;
    case titan::ErrorKind::plugin:
      return titan::core::kExitPluginError;
    default:
      return titan::core::kExitRuntimeError;
  }
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    titan::core::print_to_errors(usage());
    return titan::core::kExitConfigError;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    titan::core::print(usage());
    return titan::core::kExitDone;
  }
  if (name == "--version") {
    titan::core::print(titan::core::build_summary() + "\n");
    return titan::core::kExitDone;
  }
  for (const Command& command : titan::core::commands()) {
    if (name != command.name) continue;
    if (command.program) {
      if (titan::core::asks_for_help(arguments) && titan::core::needs_build(command.program)) {
        titan::core::print(help_without_program(command));
        return titan::core::kExitDone;
      }
      titan::core::hand_over(command.program, arguments);
    }
    return command.run(std::vector<std::string>(arguments.begin() + 1, arguments.end()));
  }
  titan::core::print_error("unknown command " + titan::in_quotes(name));
  titan::core::print_to_errors("\n" + usage());
  return titan::core::kExitConfigError;
}

/// The report on a wrong configuration; it refers to the help of `command`.
std::string report_of(const titan::core::ConfigError& error, const std::string& command) {
  const std::string report = error.diagnostics().report();
  // with a context around it, it stays as it is
  return error.what() == report ? error.diagnostics().report("titan " + command + " --help")
                                : error.what();
}

}  // namespace

int main(int argc, char** argv) {
  // a closed pipe is an error of the logger that writes to it, a file that may not grow one of the
  // checkpoint; neither ends the process without a word
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  titan::core::print_whole_lines();
  try {
    return dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const titan::Error& e) {
    // a report says "error:" on each of its diagnostics
    if (const auto* wrong = dynamic_cast<const titan::core::ConfigError*>(&e))
      titan::core::print_to_errors(report_of(*wrong, argv[1]) + "\n");
    else
      titan::core::print_error(e.what());
    titan::core::write_error_file(e.what(), "");
    return exit_code(e);
  } catch (const std::exception& e) {
    titan::core::print_error(e.what());
    titan::core::write_error_file(e.what(), "");
    return titan::core::kExitRuntimeError;
  }
}
