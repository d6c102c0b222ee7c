#include "core/config/sources/collect.h"

#include <algorithm>
#include <iterator>

#include "core/config/sources/command_line.h"
#include "core/config/sources/legacy_requests.h"

namespace titan::core {

Collected collect(const SettingList& file, const std::vector<std::string>& arguments,
                  const OptionTable& table, int world_size, Diagnostics& diagnostics) {
  Collected collected;
  const SettingList command_line = parse_command_line(arguments, table, diagnostics);
  for (const SettingList* source : {&file, &command_line}) {
    TranslatedSettings translated = translate_old_names(*source, table, world_size, diagnostics);
    check_settings(translated.list, table, collected.given, diagnostics);
    std::move(translated.later.begin(), translated.later.end(),
              std::back_inserter(collected.later));
  }
  append_old_converters(collected.later, collected.given);
  return collected;
}

OptionTable core_table(const SettingList& file) {
  OptionTable table;
  add_old_flags(table);
  const auto add_named = [&](const KeyPath& path) {
    if (path.size() < 3) return;
    if (path[0] == "data" && path[1] == "sources") table.add_source(path[2]);
    if (path[0] == "optimizer" && path[1] == "groups") table.add_optimizer_group(path[2]);
  };
  for (const TableHeader& header : file.tables) add_named(header.path);
  for (const Setting& setting : file.settings)
    if (setting.path.size() > 3) add_named(setting.path);
  return table;
}

Collected first_sight(const SettingList& file, const std::vector<std::string>& arguments,
                      int world_size) {
  Diagnostics unheard;
  return collect(file, arguments, core_table(file), world_size, unheard);
}

}  // namespace titan::core
