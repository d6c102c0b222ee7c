#include "core/config/sources/collect.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/config/legacy/plugin_keys.h"
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

bool mentions(const SettingList& file, const std::vector<std::string>& arguments,
              const KeyPath& path) {
  const auto leads_to = [&](const KeyPath& given) {
    if (begins_with(given, path)) return true;
    const std::string key = dotted(given);
    return std::any_of(old_names().begin(), old_names().end(), [&](const OldName& old) {
      return old.old_key == key && begins_with(split_dotted(old.new_key), path);
    });
  };
  const auto is_given = [&](const std::string& argument) {
    constexpr std::string_view kSet = "--set=";
    std::string name = argument.starts_with(kSet) ? argument.substr(kSet.size()) : argument;
    name = with_underscores(name.substr(0, name.find('=')));
    KeyPath given = split_dotted(name.substr(std::min(name.size(), name.find_first_not_of('_'))));
    if (leads_to(given)) return true;
    if (!given.back().starts_with("no_")) return false;
    given.back().erase(0, 3);
    return leads_to(given);
  };
  return std::any_of(file.tables.begin(), file.tables.end(),
                     [&](const TableHeader& header) { return begins_with(header.path, path); }) ||
         std::any_of(file.settings.begin(), file.settings.end(),
                     [&](const Setting& setting) { return leads_to(setting.path); }) ||
         std::any_of(arguments.begin(), arguments.end(), is_given);
}

OptionTable core_table(const SettingList& file) {
  OptionTable table;
  add_old_flags(table);
  for (const PluginKey& row : kPluginKeys)
    if (!*row.key) table.leave_unchecked(split_dotted(row.section));
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

Collected peek_core_keys(const SettingList& file, const std::vector<std::string>& arguments,
                         int world_size) {
  Diagnostics ignored;
  return collect(file, arguments, core_table(file), world_size, ignored);
}

}  // namespace titan::core
