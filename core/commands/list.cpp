// titan list [KIND]: the installed plugins, from their manifests, without loading any. titan list
// --for-job ...: those that a job uses.
#include <algorithm>

#include <titan/program/terminal.h>

#include "core/base/arguments.h"
#include "core/commands/command.h"
#include "core/commands/kind_argument.h"
#include "core/config/job_components.h"
#include "core/plugin/listing.h"

namespace titan::core {
namespace {

/// `arguments`: the job's, as `titan train` takes them.
int list_for_job(const std::vector<std::string>& arguments, int world_size,
                 const std::vector<std::string>& paths) {
  const JobSources sources = read_sources(arguments);
  std::vector<std::string> folders = paths;
  folders.insert(folders.end(), sources.plugin_paths.begin(), sources.plugin_paths.end());
  const Catalog catalog(plugin_search_path(folders));
  Registry registry(catalog);
  print(listing(components_of_job(sources, catalog, registry, world_size)));
  return kExitDone;
}

}  // namespace

int run_list(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("path", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                      "look here too, before TITAN_PLUGIN_PATH; may be repeated")(
      "ranks", po::value<int>()->default_value(1), "with --for-job: number of ranks")(
      "for-job", "list only what a job uses; its arguments of titan train follow");
  const auto job = std::find(arguments.begin(), arguments.end(), "--for-job");
  const Arguments parsed =
      parse_arguments("titan list [KIND] [--path FOLDER]... [--for-job [ARGUMENTS OF TRAIN]]",
                      flags, {arguments.begin(), job}, 0, 1);
  if (parsed.wants_help) return kExitDone;
  const int ranks = parsed.flags["ranks"].as<int>();
  TITAN_CHECK(ranks >= 1, config, "--ranks must be >= 1, got ", ranks);

  const std::string kind = parsed.words.empty() ? "" : parsed.words.front();
  if (job != arguments.end()) {
    TITAN_CHECK(kind.empty(), config, "--for-job lists every kind; leave '", kind, "' out");
    return list_for_job({job + 1, arguments.end()}, ranks, repeated(parsed, "path"));
  }
  if (!kind.empty()) require_kind(kind);
  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  print(listing(catalog, kind));
  return kExitDone;
}

}  // namespace titan::core
