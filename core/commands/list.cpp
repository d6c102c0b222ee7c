// titan list [KIND]: the components of the installed plugins, read from the manifests of the files.
// titan list --for-job ...: the components that a job uses.
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
                 const std::vector<std::string>& paths, Columns columns) {
  JobSources sources = read_sources(arguments);
  sources.plugin_paths.insert(sources.plugin_paths.begin(), paths.begin(), paths.end());
  const Catalog catalog = plugin_catalog(sources);
  Registry registry(catalog);
  print(listing(components_of_job(sources, catalog, registry, world_size), columns));
  return kExitDone;
}

}  // namespace

boost::program_options::options_description flags_of_list() {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("path", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                      "search this folder, before those of TITAN_PLUGIN_PATH; may be repeated")(
      "files", "show each plugin's version and file instead of summaries")(
      "ranks", po::value<int>()->default_value(1), "with --for-job: number of ranks of the job")(
      "for-job", "show only what a job uses; all arguments after it are those of titan train");
  return flags;
}

int run_list(const std::vector<std::string>& arguments) {
  const auto job = std::find(arguments.begin(), arguments.end(), "--for-job");
  const Arguments parsed = parse_arguments(
      "titan list [KIND] [--files] [--path FOLDER]... [--for-job [ARGUMENTS OF TRAIN]]",
      flags_of_list(), {arguments.begin(), job}, 0, 1);
  if (parsed.wants_help) return kExitDone;
  const int ranks = parsed.flags["ranks"].as<int>();
  TITAN_CHECK(ranks >= 1, config, "--ranks must be >= 1, got ", ranks);

  const Columns columns = parsed.flags.count("files") ? Columns::files : Columns::summaries;
  const std::string kind = parsed.words.empty() ? "" : parsed.words.front();
  if (job != arguments.end()) {
    TITAN_CHECK(kind.empty(), config, "--for-job lists every kind; leave '", kind, "' out");
    return list_for_job({job + 1, arguments.end()}, ranks, repeated(parsed, "path"), columns);
  }
  if (!kind.empty()) require_kind(kind);
  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  print(listing(catalog, kind, columns));
  return kExitDone;
}

}  // namespace titan::core
