// What titan-train has instead of core/commands.cpp: all own commands, with their flags for `titan
// describe --all`. `titan COMMAND` hands those over that load plugins.
#include <boost/program_options.hpp>

#include "core/commands/command.h"
#include "core/engine/engines.h"
#include "core/parts/job_parts.h"
#include "core/parts/opened_plugins.h"

namespace titan::core {
namespace {

CommandRow described(CommandRow row, boost::program_options::options_description (*flags)(),
                     bool takes_job = false) {
  row.flags = flags;
  row.takes_job = takes_job;
  return row;
}

int describe_here(const std::vector<std::string>& arguments) {
  return run_describe(arguments, commands());
}

}  // namespace

const char* const kProgramWithTorch = nullptr;

CommandHosts command_hosts() {
  static Engines engines;
  static PartsOpener parts;
  static OpenedPlugins plugin_files;
  return {&engines, &parts, &plugin_files};
}

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      described(run_by(rows::kTrain, run_train), flags_of_train, true),
      described(run_by(rows::kEstimate, run_estimate), flags_of_estimate, true),
      described(run_by(rows::kList, run_list), flags_of_list),
      described(run_by(rows::kDescribe, describe_here), flags_of_describe),
  };
  return kCommands;
}

}  // namespace titan::core
