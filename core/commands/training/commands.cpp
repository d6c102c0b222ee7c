// What titan-train has instead of core/commands.cpp: the commands that load plugins. `titan
// COMMAND` hands over to it.
#include "core/commands/command.h"
#include "core/engine/engines.h"

namespace titan::core {

const char* const kProgramWithTorch = nullptr;

EngineHost* engine_host() {
  static Engines engines;
  return &engines;
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      {"train", "", "see titan train --help", run_train},
      {"estimate", "", "see titan estimate --help", run_estimate},
      {"tokenize", "", "see titan tokenize --help", run_tokenize},
      {"chat-template", "", "see titan chat-template --help", run_chat_template},
      {"describe", "", "see titan describe --help", run_describe},
      {"check", "", "see titan check --help", run_check},
  };
  return kCommands;
}

}  // namespace titan::core
