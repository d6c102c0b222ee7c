// Commands that plugins add: found by their manifests, loaded when they are called. Used by
// main.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/commands/command.h"

namespace titan::core {

struct NamedCommand {
  std::string name;
  std::string summary;
};

/// The commands of all installed plugins, by name. Loads none.
std::vector<NamedCommand> commands_of_plugins();

/// Runs the command `name` and returns its exit code; nothing when no plugin provides it.
/// `arguments` follow the name. In a build tree the plugin is built first if it is missing, but not
/// for --help. `program_with_torch`: runs the commands that link torch; null when this is that
/// program, which then has `hosts`.
std::optional<int> run_plugin_command(const std::string& name,
                                      const std::vector<std::string>& arguments,
                                      const char* program_with_torch, const CommandHosts& hosts);

}  // namespace titan::core
