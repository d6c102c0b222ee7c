// What titan-models has instead of core/commands.cpp; `titan COMMAND` hands over to it.
#include "core/commands/command.h"
#include "core/commands/models/models.h"

namespace titan::core {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"generate", "", "see titan generate --help", generate_text},
      {"evaluate", "", "see titan evaluate --help", evaluate_model},
      {"convert", "", "see titan convert --help", convert_weights},
  };
  return kCommands;
}

}  // namespace titan::core
