#include "core/checkpoint/checkpointer.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <titan/checkpoints/branches.h>
#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/local_parts.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include "core/checkpoint/file_exchange.h"
#include "core/checkpoint/folder_use.h"
#include "core/checkpoint/own_start.h"
#include "core/checkpoint/rank_state.h"
#include "core/checkpoint/shard_plan.h"
#include "core/checkpoint/start_point.h"
#include "core/exchange/hf_export.h"
#include "core/runtime/build_info.h"
#include "core/runtime/groups/run_on_all_or_fail.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

using namespace std::chrono_literals;

/// Of a save that training waits for, while another job saves in the folder.
constexpr auto kPatience = 30s;
constexpr const char* kTriesAgain = "; the next save tries again";

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Of the ranks that read the same rows of the data, one writes their position.
bool writes_data_position(const dist::Mesh& mesh) {
  return mesh.is_representative_over({"dp"});
}

/// [rank 0] Removes the remains of an unfinished save. A complete checkpoint of the same step is
/// renamed and kept until the new one is complete.
void make_room(const std::filesystem::path& folder, const std::string& subfolder) {
  std::error_code error;
  remove_export_folders(folder.parent_path());  // no export is in progress here
  if (marker_of(folder) != Marker::none) {
    const std::filesystem::path aside = aside_path(folder);
    if (std::filesystem::exists(aside, error)) remove_checkpoint(aside);
    rename_file(folder, aside);
  } else if (std::filesystem::exists(folder, error)) {
    remove_checkpoint(folder);
  }
  std::filesystem::create_directories(folder / subfolder, error);
  TITAN_CHECK(!error, io, "cannot create the checkpoint's folder '", folder.string(),
              "': ", error.message());
}

}  // namespace

Checkpointer::Checkpointer(const JobConfig& config, const Saved& saved,
                           const Rendezvous& rendezvous)
    : config_(config),
      section_(config.checkpoint),
      saved_(saved),
      folder_(checkpoint_folder(config)),
      is_async_(section_.async_mode != AsyncMode::disabled),
      staging_(section_.async_mode == AsyncMode::async_with_pinned_mem &&
               !saved.device.device().is_cpu()) {
  if (!section_.enable || section_.load_only) return;
  std::function<void()> warm_up;
  if (is_async_)
    warm_up = [this,
               files = make_job({}, {}, Contents::training, weights_of(saved.part)).own.files] {
      staging_.warm_up(files);
    };
  saver_ = std::make_unique<Saver>(
      rendezvous, std::chrono::seconds(config.comm.init_timeout_seconds),
      [this](const SaveOutcome& outcome) { tidy(outcome); }, std::move(warm_up));
  if (!section_.local_folder) return;
  local_ = begin_local_session(
      local_run(config, rendezvous), saved.lineage, section_.local_copies,
      [&](const auto& name, const auto& own) { return rendezvous.from_all(name, own); });
  if (saved.mesh.rank() == 0)
    log::info("local checkpoints every " + std::to_string(section_.local_interval) + " steps in '" +
              local_->folder.string() + "', " + local_->description);
}

bool is_save_due(const CheckpointSection& section, int64_t step) {
  return step % section.interval == 0 || (step == 1 && section.enable_first_step_checkpoint);
}

bool is_local_save_due(const CheckpointSection& section, int64_t step) {
  return section.local_folder && step % section.local_interval == 0;
}

bool Checkpointer::is_local_due(int64_t step) const {
  return local_ && is_local_save_due(section_, step);
}

bool Checkpointer::saves_after(int64_t step) const {
  return saver_ && writes_ &&
         (step >= config_.training.steps || is_save_due(section_, step) || is_local_due(step));
}

void Checkpointer::before_update() {
  if (!saver_) return;
  const double start = monotonic_seconds();
  saver_->wait_until_copied();
  held_seconds_ += monotonic_seconds() - start;
}

bool Checkpointer::after_step(const TrainState& state) {
  if (!saver_) return false;
  report(saver_->poll(), kTriesAgain);
  if (!writes_) return false;
  if (state.step >= config_.training.steps) {
    save_last(state);
  } else if (is_save_due(section_, state.step)) {
    save(state, Contents::training, !is_async_);
  } else if (is_local_due(state.step)) {
    save_local(state);
  } else {
    return false;
  }
  return true;
}

bool Checkpointer::save_now(const TrainState& state) {
  if (!saver_ || !writes_) return false;
  if (last_saved_step_ != state.step) save(state, Contents::training, true);
  finish();
  return true;
}

void Checkpointer::save_seed() {
  TITAN_ASSERT(saver_, "a seed checkpoint was requested where saving is off");
  save({}, Contents::weights, true);
}

void Checkpointer::save_last(const TrainState& state) {
  if (section_.last_save_in_hf) return save_in_hf(state);
  save(state, section_.last_save_model_only ? Contents::weights : Contents::training, !is_async_);
}

void Checkpointer::finish() {
  if (!saver_) return;
  report(saver_->wait());
  TITAN_CHECK(last_error_.empty(), io, "the last checkpoint is not complete: ", last_error_);
}

void Checkpointer::save(const TrainState& state, Contents contents, bool waits,
                        const std::string& subfolder) {
  const double start = monotonic_seconds();
  if (saver_->is_busy())
    log::info("the checkpoint of step " + std::to_string(last_saved_step_) +
              " is still being written; training waits for it");
  report(saver_->wait(), kTriesAgain);
  last_saved_step_ = state.step;
  const std::filesystem::path folder = step_path(folder_, state.step);
  try {
    prepare_folder(folder, subfolder, waits);
  } catch (const Error& e) {
    if (waits) throw;
    const bool is_last = state.step >= config_.training.steps;
    report(SaveOutcome{.step = state.step, .error = e.what()}, is_last ? "" : kTriesAgain);
    return;
  }
  SaveJob job = subfolder.empty()
                    ? make_job(folder, state, contents, weights_of(saved_.part))
                    : make_job(folder / subfolder, state, contents, weights_for_others());
  if (!waits) {
    saved_.device.synchronize();  // the copy must not start before this step's update has finished
    job.staging = &staging_;
  }
  saver_->start(std::move(job));
  if (!waits) {
    held_seconds_ = monotonic_seconds() - start;
    return;
  }
  std::optional<SaveOutcome> outcome = saver_->wait();
  held_seconds_ = monotonic_seconds() - start;
  report(outcome);
  TITAN_CHECK(last_error_.empty(), io, "the checkpoint of step ", state.step, " in '",
              folder.string(), "' could not be written: ", last_error_,
              "; older ones are untouched. Make room, or set checkpoint.async_mode = \"async\" to "
              "train on when a save fails");
}

/// A failure only costs this step of the local checkpoints.
void Checkpointer::save_local(const TrainState& state) {
  const double start = monotonic_seconds();
  report(saver_->wait(), kTriesAgain);
  SaveJob job =
      make_job(local_->folder_of(state.step), state, Contents::training, weights_of(saved_.part));
  job.is_local = true;
  std::error_code error;  // reported when the files are written
  std::filesystem::create_directories(job.folder / kLocalCopiesName, error);
  if (local_->shift > 0)
    job.copy =
        exchange_files(job.own, local_->shift, saved_.mesh.group("world"), saved_.device.device());
  if (is_async_) {
    saved_.device.synchronize();
    job.staging = &staging_;
  }
  saver_->start(std::move(job));
  const std::optional<SaveOutcome> outcome = is_async_ ? std::nullopt : saver_->wait();
  held_seconds_ = monotonic_seconds() - start;
  report(outcome, kTriesAgain);
}

void Checkpointer::prepare_folder(const std::filesystem::path& folder, const std::string& subfolder,
                                  bool waits) const {
  run_on_all_or_fail(saved_.mesh.group("world"), saved_.device.device(), [&] {
    if (saved_.mesh.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    TITAN_CHECK(!error, io, "cannot create the checkpoint's folder '", folder.string(),
                "': ", error.message());
    TITAN_CHECK(turn_.begin(folder_, waits ? kPatience : 0s), io, "another job saves in '",
                folder_.string(),
                "' at the moment; if it is a replica group of this run that has lost the others, "
                "wait for its end or stop it, otherwise choose another checkpoint.folder");
    try {
      make_room(folder, subfolder);
    } catch (...) {
      turn_.end();
      throw;
    }
  });
}

/// The weights of an export. Collective where converters change them.
std::vector<StateTensor> Checkpointer::weights_for_others() const {
  std::vector<StateTensor> weights = weights_of(saved_.part);  // in the order of the parameters
  if (saved_.exports.empty()) return weights;
  TITAN_CHECK(saved_.exports.size() == 1, config, saved_.exports.size(),
              " converters change what is exported; select one of them in model.converters, or set "
              "checkpoint.last_save_in_hf = false");
  ExportTransform& exports = *saved_.exports.front();
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i].tensor = exports.exported(*saved_.part.parameters()[i]);
  std::erase_if(weights,
                [&](const StateTensor& weight) { return exports.is_absorbed(weight.name); });
  return weights;
}

SaveJob Checkpointer::make_job(const std::filesystem::path& folder, const TrainState& state,
                               Contents contents,
                               const std::vector<StateTensor>& all_weights) const {
  const dist::Grid& grid = saved_.mesh.grid();
  const int rank = saved_.mesh.rank();
  SaveJob job = {.folder = folder, .own = {.rank = rank}};
  job.manifest = {.contents = contents,
                  .step = state.step,
                  .tokens_seen = state.tokens_seen,
                  .tokens_learned = state.tokens_learned,
                  .lr_step = state.lr_step,
                  .loss_scale = state.loss_scale,
                  .loss_scale_steps = state.loss_scale_steps,
                  .seed = saved_.seed,
                  .model = config_.model.name,
                  .flavor = config_.model.flavor,
                  .layout = {grid.axes()},
                  .config = config_.resolved,
                  .program = build_summary(),
                  .time = wall_seconds(),
                  .lineage = saved_.lineage};
  std::vector<StateTensor> weights = own_part(all_weights, grid, rank);
  if (contents == Contents::weights) {
    const bool converts = state.step > 0;  // a seed checkpoint is exact
    job.own.files =
        plan_files(weights, "weights", rank,
                   converts ? std::optional(scalar_type(section_.export_dtype)) : std::nullopt);
    return job;
  }
  job.own.files = plan_files(weights, "weights", rank);
  for (ShardFile& file :
       plan_files(own_part(states_of(saved_.optimizer), grid, rank), "optimizer", rank))
    job.own.files.push_back(std::move(file));

  Value rank_state = Value::map({{kRandomMember, random_state(saved_.device.device())}});
  if (writes_data_position(saved_.mesh)) {
    rank_state[kLoaderMember] = saved_.loader.state().to_value();
    const FeedOptions& rows = saved_.loader.options().feed;
    job.own.first_row = rows.first_row;
    job.own.num_rows = rows.num_own_rows;
    if (rows.keeps_other_positions) {  // the file also covers rows of other replica groups
      job.own.num_rows = rows.num_rows / grid.batch();
      job.own.first_row = job.own.num_rows * saved_.mesh.batch_rank();
    }
  }
  if (rank == 0)
    if (Value states = saved_.watchers(); !states.as_map().empty())
      rank_state[kWatchersMember] = std::move(states);
  job.own.state_name = rank_state_name(rank);
  job.own.state_text = to_json(rank_state);
  return job;
}

void Checkpointer::report(const std::optional<SaveOutcome>& outcome, const std::string& prospect) {
  if (!outcome) return;
  if (!outcome->is_local) last_error_ = outcome->error;
  if (saved_.mesh.rank() != 0) return;
  if (!outcome->error.empty()) {
    log::warn("the checkpoint of step " + std::to_string(outcome->step) + " could not be written" +
              prospect + "; older ones are untouched: " + outcome->error);
    return;
  }
  if (outcome->is_local && std::exchange(is_local_told_, true)) return;
  const auto megabytes = static_cast<double>(outcome->bytes) / 1e6;
  log::info("saved step " + std::to_string(outcome->step) + " in '" + outcome->folder.string() +
            "': " + formatted("%.1f MB", megabytes) + formatted(" in %.3f s", outcome->seconds) +
            formatted(" (%.2f GB/s)", megabytes / 1e3 / outcome->seconds) +
            formatted(", training was held for %.3f s", held_seconds_));
}

/// [writing thread]
void Checkpointer::tidy(const SaveOutcome& outcome) const {
  if (local_ && local_->is_first_of_host && outcome.error.empty())
    remove_local_parts(local_->folder, local_->session, outcome.step + !outcome.is_local,
                       outcome.is_local);
  if (saved_.mesh.rank() != 0 || outcome.is_local) return;
  const std::unique_ptr<FolderTurn, void (*)(FolderTurn*)> ends_turn(
      &turn_, [](FolderTurn* turn) { turn->end(); });
  if (outcome.error.empty()) return purge(outcome.step);
  const std::filesystem::path folder = step_path(folder_, outcome.step);
  remove_checkpoint(folder);  // on a full disk the next save needs the space
  std::error_code error;
  if (std::filesystem::exists(aside_path(folder), error)) rename_file(aside_path(folder), folder);
}

/// Removes the checkpoints that keep_latest_k does not cover. `newest` was just saved; later steps
/// are ignored, because the next one may be in writing. Steps of other branches are neither counted
/// nor removed; one that another job reads is removed later.
void Checkpointer::purge(int64_t newest) const {
  const std::filesystem::path aside = aside_path(step_path(folder_, newest));
  std::error_code error;
  if (std::filesystem::exists(aside, error)) remove_checkpoint(aside);
  if (section_.keep_latest_k == 0) return;  // before manifests are read
  std::vector<CheckpointStep> complete;
  for (const CheckpointStep& step : Branches(folder_).line_of(saved_.lineage)) {
    if (step.step > newest) continue;
    if (step.marker != Marker::none)
      complete.push_back(step);
    else if (step.step < newest)  // left behind by a writer that was killed
      remove_checkpoint(step.path);
  }
  const auto num_kept = static_cast<size_t>(section_.keep_latest_k);
  for (size_t i = 0; i + num_kept < complete.size(); ++i) remove_unless_used(complete[i].path);
}

/// Writes shards, merges them into a Hugging Face folder and removes the shards once that is
/// complete.
void Checkpointer::save_in_hf(const TrainState& state) {
  save(state, Contents::weights, true, kExportFolderName);
  const std::filesystem::path folder = step_path(folder_, state.step);
  const dist::Group& world = saved_.mesh.group("world");
  const c10::Device device = saved_.device.device();
  export_to_hf(folder / kExportFolderName, folder,
               {.model = saved_.model,
                .model_name = config_.model.name,
                .tokenizer = saved_.tokenizer,
                .assets = config_.model.hf_assets_path},
               world, device);
  run_on_all_or_fail(world, device, [&] {
    if (world.rank() != 0) return;
    remove_checkpoint(folder / kExportFolderName);
    purge(state.step);
    log::info("exported step " + std::to_string(state.step) + " to the Hugging Face folder '" +
              folder.string() + "'");
  });
}

}  // namespace titan::core
