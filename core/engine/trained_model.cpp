#include "core/engine/trained_model.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/log.h>

#include <titan/program/stop_signals.h>
#include "core/config/partial_resolve.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/registry_lookup.h"
#include "core/config/sources/toml_writer.h"
#include "core/data/open_sources.h"
#include "core/engine/model_sources.h"
#include "core/parts/chosen_chat.h"
#include "core/runtime/groups/failure_policy.h"
#include "core/train/assembly/assembly.h"
#include "core/train/assembly/hf_model.h"
#include "core/train/assembly/run_identity.h"
#include "core/train/explained_failure.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHfConfig = "config.json";

std::optional<CheckpointManifest> own_manifest(const fs::path& folder) {
  if (marker_of(folder) != Marker::manifest) return std::nullopt;
  return read_checkpoint_manifest(folder);
}

bool names_model(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word.starts_with("--model.name") || word.starts_with("--job.config_file");
  });
}

}  // namespace

TrainedModel::TrainedModel(const fs::path& folder, const std::vector<std::string>& arguments,
                           const LaunchFlags& flags, const std::string& command, bool is_chat)
    : folder_(folder_of_weights(folder, "--checkpoint")),
      sources_(model_sources(arguments, own_manifest(folder_), folder_)),
      catalog_(plugin_catalog(sources_)),
      registry_(catalog_),
      launch_(detect_launch(flags)) {
  if (launch_.world_size > 1) log::set_prefix("[rank" + std::to_string(launch_.rank) + "]");
  if (marker_of(folder_) != Marker::manifest && !names_model(arguments)) {
    const Value section =
        model_of_hf_folder(folder_, catalog_, registry_,
                           "name the model with --model.name and its options, or with "
                           "--job.config_file");
    const std::vector<std::string> given = sources_.arguments;
    sources_ = read_sources("what " + (folder_ / kHfConfig).string() + " says",
                            to_toml(Value::map({{"model", section}})), given);
  }
  if (is_chat) choose_chat_template(sources_);
  RegistryLookup lookup(catalog_, registry_);
  choose_converters(sources_, CountedConverters::exporting, lookup);
  config_ = resolve_part(
      sources_, lookup,
      {.world_size = launch_.world_size, .tells = launch_.rank == 0, .command = command});
  run_ = std::make_unique<Run>();
  with_places(config_, [&] {
    run_->tokenizer = open_tokenizer(config_, registry_);
    run_->model = build_meta_model(config_, registry_).model;
    check_vocabulary(*run_->tokenizer, *run_->model, config_);
    if (is_chat) run_->chat_template = open_chat_template(config_, registry_);
    engine_.emplace(*run_, config_, folder_);
  });
}

TrainedModel::~TrainedModel() = default;

void TrainedModel::with_ranks(const std::function<void()>& work) {
  StopSignals signals(StopSignals::First::ends);
  rendezvous_ = std::make_unique<Rendezvous>(
      launch_, std::chrono::seconds(config_.comm.init_timeout_seconds));
  FailureWatch watch(*rendezvous_, std::make_unique<EndProcess>(),
                     {config_.job.dump_folder + "/" + config_.comm.save_traces_folder,
                      config_.comm.save_traces_file_prefix});
  with_failures_explained(run_, *rendezvous_, watch, [&] {
    rendezvous_->agree(rendezvous_->is_alone() ? RunIdentity() : run_identity(config_, registry_));
    with_places(config_, [&] {
      assemble_weights(*run_, config_, registry_, *rendezvous_, watch,
                       start_with_weights(folder_, config_.checkpoint));
    });
    engine_->connect(*rendezvous_);
    work();
    run_->mesh.group("world").barrier();  // others may still use this rank's connections
  });
}

}  // namespace titan::core
