// titan describe KIND [NAME] [--json]: what a component is and which options it has.
#include <cstdio>

#include "core/commands/arguments.h"
#include "core/commands/command.h"
#include "core/plugin/description.h"

namespace titan::core {

int run_describe(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("json", "JSON Schema (draft 2020-12) of the options");
  flags.add_options()("path", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                      "look here too, before TITAN_PLUGIN_PATH; may be repeated");
  const Arguments parsed = parse_arguments("titan describe KIND [NAME] [--json] [--path FOLDER]...",
                                           flags, arguments, 1, 2);
  if (parsed.wants_help) return kExitDone;

  const std::string& kind = parsed.words.front();
  require_kind(kind);
  const bool as_json = parsed.flags.count("json") > 0;
  TITAN_CHECK(!as_json || parsed.words.size() == 2, config, "--json needs the name of one ", kind);

  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  Registry registry(catalog);
  const std::string text =
      parsed.words.size() == 1 ? describe_kind(catalog, registry, kind)
      : as_json ? to_json(component_json(catalog, registry, kind, parsed.words[1]), 2) + "\n"
                : describe_component(catalog, registry, kind, parsed.words[1]);
  std::fputs(text.c_str(), stdout);
  return kExitDone;
}

}  // namespace titan::core
