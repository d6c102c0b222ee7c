// `titan train`: checks the whole job, then runs it; with --dry-run it only checks.
#include <utility>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>

#include "core/commands/command.h"
#include "core/commands/own_flags.h"
#include "core/commands/training/estimate.h"
#include "core/commands/training/train_help.h"
#include "core/config/resolve.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/registry_lookup.h"
#include "core/config/sources/toml_writer.h"
#include "core/engine/training.h"
#include "core/estimate/dry_run.h"
#include "core/estimate/memory_limit.h"
#include "core/estimate/simulated_rank.h"
#include "core/estimate/simulated_step.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

struct TrainArguments {
  bool help = false;
  bool helps_with_all = false;  // --help all
  bool dry_run = false;
  bool elsewhere = false;
  LaunchFlags launch;
  std::vector<std::string> config;  // --section.key value ...
};

/// Takes the command's own flags out; everything else belongs to the configuration.
TrainArguments parse_train(const std::vector<std::string>& arguments) {
  po::options_description own = flags_of_train();
  own.add_options()("help", "this text");
  const OwnFlags flags = take_own_flags(arguments, own, "titan train");
  const po::variables_map& values = flags.values;
  TrainArguments result;
  result.help = values.count("help") > 0;
  result.dry_run = values.count("dry-run") > 0;
  result.elsewhere = values.count("elsewhere") > 0;
  TITAN_CHECK(result.dry_run || !result.elsewhere, config,
              "--elsewhere needs --dry-run: a job that starts here reads its files here");
  result.launch = launch_flags(values);
  result.config = flags.rest;
  result.helps_with_all = result.help && std::erase(result.config, "all") > 0;
  return result;
}

/// [memory_estimation] enable: prints the estimate of the job's own layout instead of training.
int estimate_memory(const JobConfig& config, Registry& registry) {
  TITAN_CHECK(!config.memory_estimation.disable_fake_mode, config,
              "memory_estimation.disable_fake_mode = true is not supported: estimates allocate no "
              "memory; to measure, train a few steps and read memory/max_active(GiB)");
  print_estimate(config, registry, EstimateForm::text, std::nullopt);
  return kExitDone;
}

/// Rank and number of ranks. A simulated rank, and a dry run with --world-size, ignore the
/// launcher.
LaunchEnv launch_of(const TrainArguments& arguments, bool is_simulated) {
  if (is_simulated) return simulated_rank(arguments.launch);
  if (!arguments.dry_run) return detect_launch(arguments.launch);
  LaunchEnv checked = arguments.launch.world_size ? LaunchEnv{} : detect_launch();
  checked.world_size = arguments.launch.world_size.value_or(checked.world_size);
  return checked;
}

int print_dry_run(const JobConfig& config, Registry& registry, bool elsewhere) {
  Diagnostics wrong;
  const std::unique_ptr<Run> run = dry_run(config, registry, {.reads_files = !elsewhere}, wrong);
  if (!wrong.can_start()) throw ConfigError(wrong);
  print(to_toml(config.resolved));
  log::info(
      std::string(elsewhere ? "everything fits; files were not looked for" : "everything fits") +
      "; model " + config.model.name + " " + config.model.flavor + " has " +
      with_commas(run->part->num_parameters()) + " parameters; nothing was started");
  return kExitDone;
}

int simulate(JobConfig config, Registry& registry, const LaunchEnv& simulated) {
  const double start = monotonic_seconds();
  with_places(config, [&] { fit_memory_limit(config, registry, simulated.rank); });
  const std::unique_ptr<Run> run =
      with_places(config, [&] { return assemble_simulated(config, registry, simulated.rank); });
  const SimulatedStep step = simulate_step(*run, config);
  print(to_text(step));
  log::info("simulated one step of rank " + std::to_string(simulated.rank) + " of " +
            std::to_string(simulated.world_size) + " in " +
            std::to_string(static_cast<int64_t>(1000 * (monotonic_seconds() - start))) +
            " ms; nothing was trained or written");
  return kExitDone;
}

}  // namespace

po::options_description flags_of_train() {
  po::options_description own("titan train");
  own.add_options()("dry-run", "check everything, print the resolved configuration, start nothing")(
      "elsewhere", "with --dry-run: the job runs on another machine, do not look for files");
  add_launch_flags(own);
  return own;
}

int run_train(const std::vector<std::string>& raw_arguments) {
  const TrainArguments arguments = parse_train(raw_arguments);
  const double start = monotonic_seconds();
  JobSources sources = read_sources(arguments.config);
  const Catalog catalog = plugin_catalog(sources);
  Registry registry(catalog);
  RegistryLookup lookup(catalog, registry);
  if (arguments.help) {
    print_train_help(sources, lookup, arguments.helps_with_all);
    return kExitDone;
  }

  const bool is_simulated = simulates_ranks(sources);
  const bool is_estimated = asks_for_estimate(sources) && !arguments.dry_run;
  const LaunchEnv launch =
      is_estimated ? LaunchEnv{.world_size = estimated_ranks(sources, arguments.launch.world_size)}
                   : launch_of(arguments, is_simulated);
  if (launch.world_size > 1 && !is_simulated && !is_estimated && !arguments.dry_run)
    log::set_prefix("[rank" + std::to_string(launch.rank) + "]");
  if (is_estimated) simulate_unless_on_cpus(sources);
  const bool reads_files = !is_simulated && !is_estimated && !arguments.elsewhere;
  Diagnostics found;
  const JobConfig config = resolve_partly(sources, lookup,
                                          {.world_size = launch.world_size,
                                           .looks_for_files = reads_files,
                                           .picks_device = !arguments.elsewhere},
                                          found);
  if (!found.can_start())
    refuse(config, registry, {.rank = launch.rank, .reads_files = reads_files}, std::move(found));
  if (launch.rank == 0) log_messages(found.sorted());
  if (arguments.dry_run) return print_dry_run(config, registry, !reads_files);
  if (is_estimated) return with_places(config, [&] { return estimate_memory(config, registry); });
  if (is_simulated) return simulate(config, registry, launch);

  return start_training(config, registry, launch, start, nullptr);
}

}  // namespace titan::core
