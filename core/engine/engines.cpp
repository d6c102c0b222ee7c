#include "core/engine/engines.h"

#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "core/engine/convert_weights.h"
#include "core/engine/trained_model.h"
#include "core/engine/training.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"

namespace titan::core {
namespace {

LaunchFlags launch_flags(const RankFlags& flags) {
  const auto narrow = [](const std::optional<int64_t>& number) {
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  };
  return {.rank = narrow(flags.rank),
          .world_size = narrow(flags.world_size),
          .local_rank = narrow(flags.local_rank),
          .master = flags.master};
}

}  // namespace

std::unique_ptr<OpenedModel> Engines::open(const EngineRequest& request,
                                           const std::filesystem::path& weights, bool is_chat) {
  return std::make_unique<TrainedModel>(weights, request.job, launch_flags(request.ranks),
                                        request.command, is_chat);
}

int Engines::train(const EngineRequest& request, TrainingLoop& loop) {
  const double start = monotonic_seconds();
  const JobSources sources = read_sources(request.job);
  TITAN_CHECK(!simulates_ranks(sources), config, request.command,
              " cannot train a simulated rank; remove comm.mode");
  const Catalog catalog = plugin_catalog(sources);
  Registry registry(catalog);
  RegistryLookup lookup(catalog, registry);
  const LaunchEnv launch = detect_launch(launch_flags(request.ranks));
  if (launch.world_size > 1) log::set_prefix("[rank" + std::to_string(launch.rank) + "]");
  Diagnostics found;
  const JobConfig config =
      resolve_partly(sources, lookup, {.world_size = launch.world_size}, found);
  if (!found.can_start()) refuse(config, registry, {.rank = launch.rank}, std::move(found));
  if (launch.rank == 0) log_messages(found.sorted());
  return start_training(config, registry, launch, start, &loop);
}

ConversionResult Engines::convert(const ConversionRequest& request, const ReportConverted& report) {
  return convert_weights(request, report);
}

}  // namespace titan::core
