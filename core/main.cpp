// argv -> command. The only place that turns errors into exit codes.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <titan/error.h>

#include "core/commands/command.h"
#include "core/config/diagnostics.h"
#include "core/runtime/build_info.h"
#include "core/runtime/error_file.h"

namespace {

using titan::core::Command;

void print_usage(std::FILE* out) {
  std::fprintf(out, "usage: titan COMMAND [ARGUMENT]...\n\n");
  for (const Command& command : titan::core::commands())
    std::fprintf(out, "  %-11s %s\n", command.name, command.summary);
  std::fprintf(out, "\ntitan COMMAND --help tells more; titan --version names the build\n");
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
    print_usage(stderr);
    return titan::core::kExitConfigError;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout);
    return titan::core::kExitDone;
  }
  if (name == "--version") {
    std::printf("%s\n", titan::core::build_summary().c_str());
    return titan::core::kExitDone;
  }
  for (const Command& command : titan::core::commands())
    if (name == command.name)
      return command.run(std::vector<std::string>(arguments.begin() + 1, arguments.end()));
  std::fprintf(stderr, "error: unknown command '%s'\n\n", name.c_str());
  print_usage(stderr);
  return titan::core::kExitConfigError;
}

}  // namespace

int main(int argc, char** argv) {
  // a closed pipe is an error of the logger that writes to it, a file that may not grow one of the
  // checkpoint; neither ends the process without a word
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const titan::Error& e) {
    // a report says "error:" on each of its diagnostics
    const bool is_report = dynamic_cast<const titan::core::ConfigError*>(&e) != nullptr;
    std::fprintf(stderr, "%s%s\n", is_report ? "" : "error: ", e.what());
    titan::core::write_error_file(e.what(), "");
    return exit_code(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    titan::core::write_error_file(e.what(), "");
    return titan::core::kExitRuntimeError;
  }
}
