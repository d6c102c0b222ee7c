// titan flight FOLDER: explains a hang from flight records. The exit code is 1 when a rank waits.
#include <titan/command.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/shown_text.h>

#include "verdict.h"

namespace titan::commands {
namespace {

struct FlightOptions {
  std::string prefix = "rank_";
  bool json = false;
};

class Flight final : public Command {
 public:
  static constexpr CommandWords kWords{"FOLDER", 1, 1};

  Flight(const FlightOptions& options, const CommandContext& context)
      : options_(options), folder_(context.words.front()) {}

  int run() override {
    const std::vector<FlightRecord> records = read_flight_folder(folder_, options_.prefix);
    const FlightVerdict verdict = judge(records);
    if (options_.json)
      print_json(to_json(to_value(verdict), 2) + "\n");
    else
      print(printable_lines(to_text(verdict, records)));
    return verdict.findings.empty() ? kExitDone : kExitRuntimeError;
  }

 private:
  FlightOptions options_;
  std::string folder_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Flight;
  using titan::commands::FlightOptions;
  plugin.add<Flight>("flight", "diagnose a hang from flight records: which rank waits for which")
      .option("prefix", &FlightOptions::prefix, "beginning of the file names, before the rank")
      .option("json", &FlightOptions::json, "print JSON");
}
