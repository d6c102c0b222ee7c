// titan list [KIND]: which plugins there are, read from the files without opening any.
#include "core/commands/arguments.h"
#include "core/commands/command.h"
#include "core/plugin/listing.h"
#include "core/runtime/terminal.h"

namespace titan::core {

int run_list(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("path", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                      "look here too, before TITAN_PLUGIN_PATH; may be repeated");
  const Arguments parsed =
      parse_arguments("titan list [KIND] [--path FOLDER]...", flags, arguments, 0, 1);
  if (parsed.wants_help) return kExitDone;

  const std::string kind = parsed.words.empty() ? "" : parsed.words.front();
  if (!kind.empty()) require_kind(kind);
  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  print(listing(catalog, kind));
  return kExitDone;
}

}  // namespace titan::core
