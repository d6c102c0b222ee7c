// What titan-train has instead of core/commands.cpp: the commands that load plugins. `titan
// COMMAND` hands over to it.
#include "core/commands/command.h"
#include "core/engine/engines.h"
#include "core/parts/job_parts.h"

namespace titan::core {

const char* const kProgramWithTorch = nullptr;

CommandHosts command_hosts() {
  static Engines engines;
  static PartsOpener parts;
  return {&engines, &parts};
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      {"train", "", "see titan train --help", run_train},
      {"estimate", "", "see titan estimate --help", run_estimate},
      {"describe", "", "see titan describe --help", run_describe},
      {"check", "", "see titan check --help", run_check},
  };
  return kCommands;
}

}  // namespace titan::core
