// Commands that plugins add: found by their manifests, opened when they are called.
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

/// Those of every plugin that is installed, by name. Opens nothing.
std::vector<NamedCommand> commands_of_plugins();

/// Runs the command `name` and returns its exit code; nothing when no plugin provides it.
/// `arguments` follow the name. A plugin that a build tree can make is built first, except for its
/// help. `program_with_torch`: what a command that sees torch is handed over to; null when this
/// program is that one, which then has `hosts`.
std::optional<int> run_plugin_command(const std::string& name,
                                      const std::vector<std::string>& arguments,
                                      const char* program_with_torch, const CommandHosts& hosts);

}  // namespace titan::core
