// What titan-models has instead of core/commands.cpp; `titan COMMAND` hands over to it.
#include "core/commands/command.h"
#include "core/commands/models/models.h"

namespace titan::core {

const char* const kProgramWithTorch = nullptr;

CommandHosts command_hosts() {
  return {};
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      {"convert", "", "see titan convert --help", convert_weights},
  };
  return kCommands;
}

}  // namespace titan::core
