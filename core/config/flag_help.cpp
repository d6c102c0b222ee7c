#include "core/config/flag_help.h"

#include "core/config/selection/component_selection.h"
#include "core/config/sources/collect.h"

namespace titan::core {

std::vector<FlagHelp> list_flags(const JobSources& sources, ComponentLookup& lookup) {
  OptionTable table = core_table(sources.file);
  Diagnostics ignored;
  choose_components(peek_core_keys(sources.file, sources.arguments, 1).given, {}, lookup, table,
                    ignored);

  std::vector<FlagHelp> flags;
  for (const KnownOption& known : table.options()) {
    if (known.is_old_name) continue;
    const Option& option = *known.option;
    const std::string section = dotted(KeyPath(known.path.begin(), known.path.end() - 1));
    FlagHelp& flag = flags.emplace_back();
    flag.flag = "--" + dotted(known.path);
    if (option.type == OptionType::boolean)
      flag.negative_flag = "--" + section + ".no_" + option.name;
    flag.section = section;
    flag.allowed = option.allowed();
    flag.default_value = option.default_value.is_null() ? "unset" : to_json(option.default_value);
    flag.help = option.help;
    if (known.component) flag.component = describe(*known.component);
  }
  return flags;
}

}  // namespace titan::core
