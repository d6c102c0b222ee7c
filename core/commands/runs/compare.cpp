// titan compare RUN RUN: where two runs part. Exit code 1 when they do.
#include <titan/shown_text.h>

#include "core/base/arguments.h"
#include "core/base/terminal.h"
#include "core/commands/runs/runs.h"
#include "core/compare/comparison.h"

namespace titan::core {

int compare_runs(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("tolerance", po::value<double>()->default_value(0),
                      "how far numbers may be apart, relative to the larger; 0: not a bit");
  flags.add_options()("json", "JSON, for programs");
  const Arguments parsed =
      parse_arguments("titan compare RUN RUN [--tolerance X] [--json]", flags, arguments, 2, 2);
  if (parsed.wants_help) return kExitDone;
  const double tolerance = parsed.flags["tolerance"].as<double>();
  TITAN_CHECK(tolerance >= 0, config, "--tolerance must be >= 0, got ", tolerance);
  const Comparison comparison =
      compare(read_run(parsed.words[0]), read_run(parsed.words[1]), tolerance);
  if (parsed.flags.count("json"))
    print_json(to_json(to_value(comparison), 2) + "\n");
  else
    print(printable_lines(to_text(comparison)));
  return comparison.are_same() ? kExitDone : kExitRuntimeError;
}

}  // namespace titan::core
