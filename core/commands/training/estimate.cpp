// `titan estimate`: what a job would take on machines that need not be here.
#include "core/commands/training/estimate.h"

#include <algorithm>
#include <cmath>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/terminal.h>

#include "core/commands/command.h"
#include "core/commands/own_flags.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/default_plugins.h"
#include "core/config/selection/registry_lookup.h"
#include "core/config/sources/collect.h"
#include "core/estimate/simulated_rank.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

constexpr const char* kEstimateUsage =
    "usage: titan estimate [--job.config_file FILE] [--ranks N] [--json]\n"
    "                      [--peak-flops X --bandwidth Y] [--section.key VALUE]...\n\n"
    "  --ranks N        ranks of the run; default: the product of the degrees, or NGPU if\n"
    "                   parallelism.data_parallel_shard_degree is -1\n"
    "  --peak-flops X   FLOP/s of one rank, and\n"
    "  --bandwidth Y    bytes/s that it sends; with both the time of a step is predicted\n"
    "  --json           print JSON\n\n"
    "One rank of each pipeline rank is simulated without data or memory, for the machine that the\n"
    "configuration is written for; device.name = \"cpu\" estimates a run on CPUs.\n"
    "The configuration's flags are those of titan train.\n";

struct EstimateArguments {
  bool help = false;
  std::optional<int> ranks;
  EstimateForm form = EstimateForm::text;
  std::optional<MachineSpeed> speed;
  std::vector<std::string> config;
};

double positive(const po::variables_map& values, const char* flag) {
  const double value = values[flag].as<double>();
  TITAN_CHECK(std::isfinite(value) && value > 0, config, "--", flag, " must be > 0, got ", value);
  return value;
}

EstimateArguments parse_estimate(const std::vector<std::string>& arguments) {
  po::options_description own = flags_of_estimate();
  own.add_options()("help", "this text");
  const OwnFlags flags = take_own_flags(arguments, own, "titan estimate");
  const po::variables_map& values = flags.values;
  EstimateArguments result;
  result.help = values.count("help") > 0;
  if (values.count("json")) result.form = EstimateForm::json;
  if (values.count("ranks")) result.ranks = values["ranks"].as<int>();
  TITAN_CHECK(!result.ranks || *result.ranks >= 1, config, "--ranks must be >= 1, got ",
              *result.ranks);
  const bool has_flops = values.count("peak-flops") > 0, has_bytes = values.count("bandwidth") > 0;
  TITAN_CHECK(has_flops == has_bytes, config,
              "--peak-flops and --bandwidth are needed together to predict a time; give --",
              has_flops ? "bandwidth" : "peak-flops", " as well");
  if (has_flops) result.speed = {positive(values, "peak-flops"), positive(values, "bandwidth")};
  result.config = flags.rest;
  return result;
}

const Value* given(const GivenValues& values, const char* key) {
  const Given* found = values.find(key);
  return found && found->is_valid ? &found->value : nullptr;
}

}  // namespace

void simulate_unless_on_cpus(JobSources& sources) {
  const Collected first = peek_core_keys(sources.file, sources.arguments, 1);
  const Value* device = given(first.given, "device.name");
  if (device && *device == Value(default_plugins::kHost)) return;
  if (!given(first.given, "comm.mode"))
    sources.arguments.insert(sources.arguments.end(), {"--comm.mode", "fake_backend"});
}

bool asks_for_estimate(const JobSources& sources) {
  const Collected first = peek_core_keys(sources.file, sources.arguments, 1);
  const Value* enable = given(first.given, "memory_estimation.enable");
  return enable && *enable == Value(true);
}

int estimated_ranks(const JobSources& sources, std::optional<int> asked) {
  if (asked) return *asked;
  const Collected first = peek_core_keys(sources.file, sources.arguments, 1);
  const auto degree = [&](const char* key, int64_t otherwise) {
    const Value* value = given(first.given, key);
    return value && value->is_integer() ? value->as_integer() : otherwise;
  };
  const int64_t shard = degree("parallelism.data_parallel_shard_degree", -1);
  if (const std::optional<int> ngpu = shard < 0 ? ranks_of_environment() : std::nullopt)
    return *ngpu;
  int64_t ranks = std::max<int64_t>(1, shard);
  for (const char* key :
       {"parallelism.data_parallel_replicate_degree", "parallelism.tensor_parallel_degree",
        "parallelism.pipeline_parallel_degree", "parallelism.context_parallel_degree"}) {
    constexpr int64_t kMost = int64_t{1} << 30;  // wrong degrees are reported with the rest
    ranks = std::min(kMost, ranks * std::clamp<int64_t>(degree(key, 1), 1, kMost));
  }
  return static_cast<int>(ranks);
}

void print_estimate(const JobConfig& config, Registry& registry, EstimateForm form,
                    const std::optional<MachineSpeed>& speed) {
  const double start = monotonic_seconds();
  const Estimate result = estimate(config, registry, speed);
  if (form == EstimateForm::json)
    print_json(to_json(to_value(result), 2) + "\n");
  else
    print(to_text(result));
  if (form == EstimateForm::text)
    log::info("estimated in " +
              std::to_string(static_cast<int64_t>(1000 * (monotonic_seconds() - start))) +
              " ms; nothing was trained or written");
}

po::options_description flags_of_estimate() {
  po::options_description own("titan estimate");
  own.add_options()("ranks", po::value<int>()->value_name("N"),
                    "ranks of the run; default: the product of the degrees")("json", "print JSON")(
      "peak-flops", po::value<double>()->value_name("X"), "FLOP/s of one rank")(
      "bandwidth", po::value<double>()->value_name("Y"), "bytes/s that one rank sends");
  return own;
}

int run_estimate(const std::vector<std::string>& raw_arguments) {
  const EstimateArguments arguments = parse_estimate(raw_arguments);
  if (arguments.help) {
    print(kEstimateUsage);
    return kExitDone;
  }
  JobSources sources = read_sources(arguments.config);
  simulate_unless_on_cpus(sources);
  const Catalog catalog = plugin_catalog(sources);
  Registry registry(catalog);
  RegistryLookup lookup(catalog, registry);
  const int world_size = estimated_ranks(sources, arguments.ranks);
  const Resolution resolution =
      resolve(sources, lookup, {.world_size = world_size, .looks_for_files = false});
  for (const Diagnostic& message : resolution.messages)
    if (message.severity == Severity::warning) log::warn(render_for_log(message));
  const JobConfig& config = resolution.config;
  with_places(config, [&] { print_estimate(config, registry, arguments.form, arguments.speed); });
  return kExitDone;
}

}  // namespace titan::core
