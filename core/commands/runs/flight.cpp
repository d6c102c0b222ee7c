// titan flight FOLDER: why a run stands still. Exit code 1 when something does.
#include <titan/shown_text.h>

#include "core/base/arguments.h"
#include "core/base/terminal.h"
#include "core/commands/runs/runs.h"
#include "core/flight/verdict.h"

namespace titan::core {

int judge_flight_records(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("prefix", po::value<std::string>()->default_value("rank_"),
                      "what the files' names begin with; the rank follows");
  flags.add_options()("json", "JSON, for programs");
  const Arguments parsed =
      parse_arguments("titan flight FOLDER [--prefix TEXT] [--json]", flags, arguments, 1, 1);
  if (parsed.wants_help) return kExitDone;
  const std::vector<FlightRecord> records =
      read_flight_folder(parsed.words.front(), parsed.flags["prefix"].as<std::string>());
  const FlightVerdict verdict = judge(records);
  if (parsed.flags.count("json"))
    print_json(to_json(to_value(verdict), 2) + "\n");
  else
    print(printable_lines(to_text(verdict, records)));
  return verdict.findings.empty() ? kExitDone : kExitRuntimeError;
}

}  // namespace titan::core
