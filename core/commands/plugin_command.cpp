#include "core/commands/plugin_command.h"

#include <titan/command.h>
#include <titan/error.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "core/commands/command_flags.h"
#include "core/commands/hand_over.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {
namespace {

Catalog installed_plugins() {
  return Catalog(plugin_search_path({}));
}

/// The plugin that provides the command, if it is not built yet and the only one.
const CatalogEntry* unbuilt_provider(const Catalog& catalog, const std::string& name) {
  const auto providers = catalog.providers(titan::Command::kKind, name);
  return providers.size() == 1 && !providers.front()->build_command.empty() ? providers.front()
                                                                            : nullptr;
}

int run_here(const Catalog& catalog, const std::string& name,
             const std::vector<std::string>& arguments, const CommandHosts& hosts) {
  Registry registry(catalog);
  const Component& component = registry.component(titan::Command::kKind, name);
  const CommandInput input = read_command_input(component, arguments);
  if (input.wants_help) {
    print(command_help(component));
    return kExitDone;
  }
  const CommandContext context{.words = input.words,
                               .program = program_beside("titan"),
                               .engines = hosts.engines,
                               .parts = hosts.parts,
                               .plugin_files = hosts.plugin_files};
  return registry.create<titan::Command>(name, input.options, context)->run();
}

}  // namespace

std::vector<NamedCommand> commands_of_plugins() {
  const Catalog catalog = installed_plugins();
  std::vector<NamedCommand> commands;
  for (const std::string& name : catalog.names(titan::Command::kKind)) {
    const Manifest& manifest = catalog.providers(titan::Command::kKind, name).front()->manifest;
    commands.push_back({name, std::string(manifest.summary(titan::Command::kKind, name))});
  }
  return commands;
}

std::optional<int> run_plugin_command(const std::string& name,
                                      const std::vector<std::string>& arguments,
                                      const char* program_with_torch, const CommandHosts& hosts) {
  Catalog catalog = installed_plugins();
  if (catalog.providers(titan::Command::kKind, name).empty()) return std::nullopt;
  if (const CatalogEntry* entry = unbuilt_provider(catalog, name)) {
    const std::string target = entry->manifest.plugin + ".plugin";
    if (asks_for_help(arguments)) {
      print(help_before_build("titan " + name + " ...",
                              std::string(entry->manifest.summary(titan::Command::kKind, name)),
                              "The plugin", target));
      return kExitDone;
    }
    build_missing(target, [&] { return !unbuilt_provider(installed_plugins(), name); });
    catalog = installed_plugins();
  }
  const auto providers = catalog.providers(titan::Command::kKind, name);
  if (program_with_torch && providers.size() == 1 &&
      providers.front()->manifest.field("torch") != "none")
    hand_over(program_with_torch, name, arguments);
  return run_here(catalog, name, arguments, hosts);
}

}  // namespace titan::core
