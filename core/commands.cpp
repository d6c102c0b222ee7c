// The table of the program's own commands. `titan` runs those that need neither torch nor a loaded
// plugin itself, so that they answer at once; it hands the others over to titan-train.
#include "core/commands/command.h"
#include "core/parts/job_parts.h"
#include "core/parts/opened_plugins.h"

namespace titan::core {
namespace {

constexpr const char* kTraining = "titan-train";  // loads plugins, and torch

}  // namespace

const char* const kProgramWithTorch = kTraining;

CommandHosts command_hosts() {
  static PartsOpener parts;
  static OpenedPlugins plugin_files;
  return {.parts = &parts, .plugin_files = &plugin_files};
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      handed_to(rows::kTrain, kTraining),
      handed_to(rows::kEstimate, kTraining),
      run_by(rows::kList, run_list),
      handed_to(rows::kDescribe, kTraining),
  };
  return kCommands;
}

}  // namespace titan::core
