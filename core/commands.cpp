// The table of the program's own commands. `titan` runs those that need neither torch nor a loaded
// plugin itself, so that they answer at once; it hands the others over to titan-train.
#include "core/commands/command.h"
#include "core/parts/job_parts.h"

namespace titan::core {
namespace {

constexpr const char* kTraining = "titan-train";  // loads plugins, and torch

}  // namespace

const char* const kProgramWithTorch = kTraining;

CommandHosts command_hosts() {
  static PartsOpener parts;
  return {.parts = &parts};
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      {"train",
       "titan train [--job.config_file FILE] [--dry-run] [--world-size N] [--section.key VALUE]...",
       "train a model", nullptr, kTraining},
      {"estimate",
       "titan estimate [--job.config_file FILE] [--ranks N] [--peak-flops X --bandwidth Y] "
       "[--json] "
       "[--section.key VALUE]...",
       "estimate memory, FLOPs and communication of a job", nullptr, kTraining},
      {"list", "titan list [KIND] [--files] [--path FOLDER]...", "list the installed plugins", run_list},
      {"describe", "titan describe KIND [NAME] [--json] [--path FOLDER]...",
       "show the options of a plugin or the keys of a section, with defaults and limits", nullptr,
       kTraining},
      {"check", "titan check FILE [--timeout SECONDS]",
       "find out whether a plugin file can be used here", nullptr, kTraining},
      {"new-plugin", "titan new-plugin KIND OWNER/NAME [--directory FOLDER]",
       "create a project for a plugin", run_new_plugin},
  };
  return kCommands;
}

}  // namespace titan::core
