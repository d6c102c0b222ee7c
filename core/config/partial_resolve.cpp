#include "core/config/partial_resolve.h"

#include <optional>
#include <utility>

#include <titan/log.h>

namespace titan::core {

void keep_settings(SettingList& list, const std::function<bool(const KeyPath&)>& counts) {
  std::erase_if(list.settings, [&](const Setting& setting) { return !counts(setting.path); });
  std::erase_if(list.tables, [&](const TableHeader& table) { return !counts(table.path); });
}

JobConfig resolve_part(const JobSources& sources, ComponentLookup& lookup,
                       const PartialResolution& asked) {
  Diagnostics all, wrong;
  std::optional<JobConfig> config =
      try_resolve(sources, lookup, {.world_size = asked.world_size, .looks_for_files = false}, all);
  for (Diagnostic message : all.sorted()) {
    if (message.severity == Severity::warning && config && asked.tells)
      log::warn(render_for_log(message));
    if (message.severity != Severity::error) continue;
    if (message.see.empty() && !asked.command.empty()) message.see = asked.command + " --help";
    wrong.add(std::move(message));
  }
  if (!config) throw ConfigError(wrong);
  return std::move(*config);
}

}  // namespace titan::core
