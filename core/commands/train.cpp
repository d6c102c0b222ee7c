// `titan train`: checks the whole job, then runs it; with --dry-run only the first.
#include <cstdio>
#include <filesystem>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/log.h>

#include "core/commands/command.h"
#include "core/config/flag_help.h"
#include "core/config/registry_lookup.h"
#include "core/config/resolve.h"
#include "core/config/toml_writer.h"
#include "core/runtime/build_info.h"
#include "core/runtime/clock.h"
#include "core/runtime/signals.h"
#include "core/train/trainer.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

struct Arguments {
  bool help = false;
  bool dry_run = false;
  std::optional<int> world_size;
  std::vector<std::string> config;  // --section.key value ...
};

/// Takes the command's own flags out; everything else belongs to the configuration.
Arguments parse(const std::vector<std::string>& arguments) {
  po::options_description own("titan train");
  own.add_options()("help", "this text")(
      "dry-run", "check everything, print the resolved configuration, start nothing")(
      "world-size", po::value<int>(), "with --dry-run: check for this many ranks");
  namespace style = po::command_line_style;
  Arguments result;
  try {
    const auto parsed =
        po::command_line_parser(arguments)
            .options(own)
            .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
            .allow_unregistered()
            .run();
    po::variables_map values;
    po::store(parsed, values);
    result.help = values.count("help") > 0;
    result.dry_run = values.count("dry-run") > 0;
    if (values.count("world-size")) result.world_size = values["world-size"].as<int>();
    result.config = po::collect_unrecognized(parsed.options, po::include_positional);
  } catch (const po::error& e) {
    fail(ErrorKind::config, e.what(), "; see: titan train --help");
  }
  TITAN_CHECK(!result.world_size || result.dry_run, config,
              "--world-size belongs to --dry-run: the launcher decides how many ranks really run");
  TITAN_CHECK(!result.world_size || *result.world_size >= 1, config,
              "--world-size must be >= 1, got ", *result.world_size);
  return result;
}

void print_help(const JobSources& sources, ComponentLookup& lookup) {
  std::printf(
      "usage: titan train [--job.config_file FILE] [--dry-run] [--world-size N] [--section.key "
      "VALUE]...\n\n"
      "  --dry-run         check everything, print the resolved configuration, start nothing\n"
      "  --world-size N    with --dry-run: check for this many ranks\n");
  std::string section;
  for (const FlagHelp& flag : list_flags(sources, lookup)) {
    if (flag.section != section) std::printf("\n[%s]\n", flag.section.c_str());
    section = flag.section;
    std::printf("  %s%s%s\n      %s (%s; default %s)\n", flag.flag.c_str(),
                flag.negative_flag.empty() ? "" : ", ", flag.negative_flag.c_str(),
                flag.help.c_str(), flag.allowed.c_str(), flag.default_value.c_str());
  }
}

void print(const std::vector<Diagnostic>& messages) {
  for (const Diagnostic& message : messages)
    message.severity == Severity::note ? log::info(message.message) : log::warn(render(message));
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(digits.begin() + i, ',');
  return digits;
}

int finish(StopReason reason, const Trainer& trainer) {
  const std::string step = std::to_string(trainer.state().step);
  switch (reason) {
    case StopReason::all_steps_done:
      log::info("training completed after step " + step);
      return kExitDone;
    case StopReason::interrupted:
      log::info("stopped by SIGINT after step " + step);
      return kExitDone;
    case StopReason::terminated:
      log::info("stopped by SIGTERM after step " + step);
      return kExitTerminated;
  }
  return kExitRuntimeError;
}

}  // namespace

int run_train(const std::vector<std::string>& raw_arguments) {
  const Arguments arguments = parse(raw_arguments);
  const double start = monotonic_seconds();
  const LaunchEnv launch = detect_launch();
  const JobSources sources = read_sources(arguments.config);
  const Catalog catalog(plugin_search_path(sources.plugin_paths));
  Registry registry(catalog);
  RegistryLookup lookup(catalog, registry);
  if (arguments.help) {
    print_help(sources, lookup);
    return kExitDone;
  }

  const Resolution resolution =
      resolve(sources, lookup, {.world_size = arguments.world_size.value_or(launch.world_size)});
  const JobConfig& config = resolution.config;
  print(resolution.messages);
  if (arguments.dry_run) {
    const MetaModel meta = build_meta_model(config, registry);
    std::printf("%s", to_toml(config.resolved).c_str());
    if (!std::filesystem::is_directory(config.model.hf_assets_path))
      log::warn("model.hf_assets_path '" + config.model.hf_assets_path + "' is not a folder here");
    log::info("everything fits; model " + config.model.name + " " + config.model.flavor + " has " +
              with_commas(meta.part->num_parameters()) + " parameters; nothing was started");
    return kExitDone;
  }

  log::info(build_summary());
  log::info("starting job: " + config.job.description);
  if (config.job.print_config) log::info("configuration:\n" + to_json(config.resolved, 2));

  StopSignals signals;
  const std::unique_ptr<Run> run = assemble(config, registry, launch);
  log::info("model " + config.model.name + " " + config.model.flavor + ": " +
            with_commas(run->part->num_parameters()) + " parameters, " +
            run->device->description());
  log::info("training " + std::to_string(config.training.steps) + " steps of " +
            std::to_string(config.layout.global_batch_size) + " x " +
            std::to_string(config.training.seq_len) + " tokens; output in " +
            config.job.dump_folder + "; ready after " +
            std::to_string(static_cast<int64_t>(1000 * (monotonic_seconds() - start))) + " ms");
  Trainer trainer(*run, config);
  const StopReason reason = trainer.run();
  return finish(reason, trainer);
}

}  // namespace titan::core
