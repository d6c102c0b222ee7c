#include "core/train/assembly/reference_job.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/hf_exchange.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "core/config/sources/toml_writer.h"
#include "core/exchange/model_options.h"
#include "core/plugin/catalog.h"
#include "core/train/assembly/hf_model.h"

namespace titan::core {
namespace {

JobConfig without_training(JobConfig config) {
  config.loss = {};
  config.loggers.clear();
  config.watchers.clear();
  config.optimizer_groups.clear();
  config.optimizer_section.early_step_in_backward = false;
  config.model.print_after_conversion = false;
  config.metrics = {};
  config.checkpoint.last_save_in_hf = false;
  return config;
}

/// The [model] section for the folder's model; unset if that is `model`, or if the folder does not
/// describe it.
std::optional<Value> other_model(const JobConfig& config, const Model& model,
                                 const std::filesystem::path& folder, const Catalog& catalog,
                                 Registry& registry) {
  if (folder.empty()) return std::nullopt;
  if (marker_of(folder) == Marker::manifest) {
    const CheckpointManifest manifest = read_checkpoint_manifest(folder);
    if (model_differences(manifest.config, config, model, registry).empty()) return std::nullopt;
    return manifest.config.at("model");
  }
  const std::filesystem::path described = folder / "config.json";
  if (!std::filesystem::is_regular_file(described)) return std::nullopt;
  const auto* exchange = dynamic_cast<const HfExchange*>(&model);
  if (exchange && exchange->config_differences(read_json(described)).empty()) return std::nullopt;
  return model_of_hf_folder(
      folder, catalog, registry,
      "take another reference.checkpoint, or a Titan checkpoint, whose manifest "
      "names its model");
}

}  // namespace

JobConfig reference_job(const JobConfig& config, const Model& model,
                        const std::filesystem::path& folder, Registry& registry) {
  JobSources plugins;
  plugins.plugin_paths = config.plugins.paths;
  plugins.plugin_lock = config.plugins.lock;
  plugins.allows_unsigned = config.plugins.allow_unsigned;
  const Catalog catalog = plugin_catalog(plugins);
  std::optional<Value> other = other_model(config, model, folder, catalog, registry);
  if (!other) return without_training(config);
  (*other)["hf_assets_path"] = config.model.hf_assets_path;
  (*other)["converters"] = Value::list();
  Value job = config.resolved;
  job["model"] = std::move(*other);
  static const std::set<std::string> kOfTheRunAlone = {"converter", "loss",    "reference",
                                                       "logger",    "watcher", "optimizer"};
  std::erase_if(job.as_map(),
                [](const auto& section) { return kOfTheRunAlone.contains(section.first); });
  const JobSources sources =
      read_sources("the job of the reference model in " + folder.string(), to_toml(job), {});
  RegistryLookup lookup(catalog, registry);
  Diagnostics found;
  std::optional<JobConfig> resolved = try_resolve(
      sources, lookup, {.world_size = config.world_size, .looks_for_files = false}, found);
  std::string wrong;
  for (const Diagnostic& message : found.sorted())
    if (message.severity == Severity::error) wrong += "\n  " + message.message;
  TITAN_CHECK(resolved && wrong.empty(), config, "the model in '", folder.string(),
              "' (reference.checkpoint) cannot be run by this job:", wrong);
  return without_training(std::move(*resolved));
}

}  // namespace titan::core
