// titan check FILE: loads a plugin file in a child process to find out whether it can be used here.
// Exit code 0 or 3.
#include <chrono>
#include <cmath>
#include <cstdio>

#include <titan/program/terminal.h>

#include "core/base/arguments.h"
#include "core/commands/command.h"
#include "core/plugin/catalog.h"
#include "core/plugin/plugin_check.h"

namespace titan::core {

int run_check(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("timeout", po::value<double>()->default_value(60)->value_name("SECONDS"),
                      "how long loading may take");
  const Arguments parsed =
      parse_arguments("titan check FILE [--timeout SECONDS]", flags, arguments, 1, 1);
  if (parsed.wants_help) return kExitDone;

  const double seconds = parsed.flags["timeout"].as<double>();
  TITAN_CHECK(seconds > 0 && seconds <= 86400, config, "--timeout must be > 0 and <= 86400, got ",
              seconds);
  const PluginCheck report =
      check_plugin(parsed.words.front(), plugin_search_path({}),
                   std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000))));
  for (const std::string& step : report.passed) print("ok    " + step + "\n");
  for (const std::string& note : report.notes) print("note  " + note + "\n");
  std::fflush(stdout);
  if (!report.problem.empty()) throw Error(ErrorKind::plugin, report.problem);
  print("the plugin can be used\n");
  return kExitDone;
}

}  // namespace titan::core
