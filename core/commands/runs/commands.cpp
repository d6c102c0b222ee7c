// What titan-runs has instead of core/commands.cpp; `titan COMMAND` hands over to it.
#include "core/commands/command.h"
#include "core/commands/runs/runs.h"

namespace titan::core {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"flight", "", "see titan flight --help", judge_flight_records},
      {"compare", "", "see titan compare --help", compare_runs},
      {"bench", "", "see titan bench --help", measure_runs},
      {"report", "", "see titan report --help", write_report},
      {"top", "", "see titan top --help", show_top},
      {"trace", "", "see titan trace --help", merge_traces},
  };
  return kCommands;
}

}  // namespace titan::core
