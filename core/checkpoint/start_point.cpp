#include "core/checkpoint/start_point.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/local_parts.h>
#include <titan/checkpoints/verify.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/log.h>

#include "core/checkpoint/own_start.h"
#include "core/checkpoint/rank_state.h"
#include "core/exchange/hf_folder.h"
#include "core/exchange/naming_convention.h"

namespace titan::core {
namespace {

using Kind = StartPoint::Kind;

/// The result of rank 0's search, which it sends to the other ranks.
struct Finding {
  Kind kind = Kind::fresh;
  std::filesystem::path folder;
  bool is_own = false;
  bool is_restart = false;
  Lineage lineage;
};

bool has_safetensors(const std::filesystem::path& folder) {
  return !safetensors_files(folder).empty();
}

Finding initial(const CheckpointSection& section, const std::string& hf_assets_path) {
  const std::filesystem::path path = section.initial_load_path.value_or(hf_assets_path);
  const char* key = section.initial_load_path ? "checkpoint.initial_load_path"
                                              : "checkpoint.initial_load_in_hf: "
                                                "model.hf_assets_path";
  TITAN_CHECK(std::filesystem::is_directory(path), config, key, " = '", path.string(),
              "' is not a folder");
  if (section.initial_load_in_hf) return {Kind::hugging_face, path};
  switch (marker_of(path)) {
    case Marker::manifest:
      return {Kind::checkpoint, path};
    case Marker::hf_index:
      fail(ErrorKind::config, key, " = '", path.string(),
           "' is a Hugging Face folder; set checkpoint.initial_load_in_hf = true");
    case Marker::dcp:
      refuse_foreign({0, path, Marker::dcp});
      break;
    case Marker::none:
      break;
  }
  const std::vector<CheckpointStep> steps = list_steps(path);
  if (section.load_step >= 0 && !steps.empty())
    return {Kind::checkpoint, asked_step(steps, section.load_step, path).path};
  if (const auto newest = Branches(path).newest_step({Marker::manifest}))
    return {Kind::checkpoint, newest->path};
  TITAN_CHECK(has_safetensors(path), config, key, " = '", path.string(),
              "' holds no complete checkpoint and no safetensors");
  TITAN_CHECK(section.initial_load_model_only, config, key, " = '", path.string(),
              "' has no manifest.json: only weights can be read from it, but "
              "checkpoint.initial_load_model_only = false");
  return {Kind::shards, path};
}

/// The step in the found folder as the parent of a branch that starts from it, if its lineage is
/// known.
std::optional<Lineage::Point> point_of(const Finding& found) {
  if (found.kind != Kind::checkpoint) return std::nullopt;
  const CheckpointManifest manifest = read_checkpoint_manifest(found.folder);
  if (!manifest.lineage.is_known()) return std::nullopt;
  return Lineage::Point{manifest.lineage.job, manifest.lineage.branch, manifest.step};
}

Kind kind_of(const OwnStart& own) {
  switch (own.kind) {
    case OwnStart::Kind::fresh:
      return Kind::fresh;
    case OwnStart::Kind::checkpoint:
      return Kind::checkpoint;
    case OwnStart::Kind::done:
      return Kind::done;
  }
  return Kind::fresh;
}

Finding find(const JobConfig& config) {
  const CheckpointSection& section = config.checkpoint;
  if (!section.enable) return {};
  const bool has_initial = section.initial_load_path || section.initial_load_in_hf;
  OwnStart own = find_own_start(config, has_initial);
  Finding found{kind_of(own), own.folder, own.kind != OwnStart::Kind::fresh, own.is_restart,
                own.lineage};
  if (found.kind != Kind::fresh || !has_initial) return found;
  const Lineage lineage = std::move(found.lineage);
  found = initial(section, config.model.hf_assets_path);
  found.lineage = lineage;
  found.lineage.parent = point_of(found);
  return found;
}

/// A small file of the checkpoint, checked against its hash.
Value read_checked(const StartPoint& start, const ManifestFile& file) {
  const std::filesystem::path path = start.folder / file.name;
  const auto known = start.texts.find(file.name);
  const std::string text = known == start.texts.end() ? read_text(path) : known->second;
  TITAN_CHECK(hash_hex(text) == file.hash, data, "'", path.string(),
              "' is damaged: its XXH3-128 is ", hash_hex(text), ", but written was ", file.hash);
  return parse_json(text);
}

void choose_parts(StartPoint& start, const CheckpointSection& section) {
  if (start.kind != Kind::checkpoint) return;
  const bool all = start.is_own ? start.manifest.step > 0 : !section.initial_load_model_only;
  if (!all) return;
  TITAN_CHECK(start.manifest.contents == Contents::training, config, "'", start.folder.string(),
              "' holds weights only, but checkpoint.initial_load_model_only = false");
  const auto is_taken = [&](const char* part) {
    const auto& left_out = section.exclude_from_loading;
    if (start.is_restart) return true;  // they were left out when the branch began
    return std::find(left_out.begin(), left_out.end(), part) == left_out.end();
  };
  start.loads_optimizer = is_taken("optimizer");
  start.loads_data = is_taken("dataloader");
  start.loads_train_state = is_taken("train_state");
  start.loads_lr = is_taken("lr_scheduler");
}

/// Reads the headers of what was found.
StartPoint opened(const Finding& found, const CheckpointSection& section) {
  StartPoint start;
  start.kind = found.kind;
  start.folder = found.folder;
  start.is_own = found.is_own;
  start.is_restart = found.is_restart;
  start.lineage = found.lineage;
  switch (start.kind) {
    case Kind::fresh:
    case Kind::done:
      return start;
    case Kind::checkpoint:
      start.manifest = read_checkpoint_manifest(start.folder);
      start.index = open_checkpoint(start.folder, start.manifest);
      break;
    case Kind::shards:
      start.index = index_files(safetensors_files(start.folder));
      require_own_convention(start.index, "'" + start.folder.string() + "'", section);
      break;
    case Kind::hugging_face:
      start.index = index_files(hf_files(start.folder));
      break;
  }
  choose_parts(start, section);
  return start;
}

/// Calls `find` on rank 0 and returns its result on every rank.
template <class Find>
Finding found_by_rank_zero(Rendezvous& rendezvous, const std::string& what, Find&& find) {
  Value message;
  if (rendezvous.launch().rank == 0) {
    const Finding found = find();
    message = Value::map({{"kind", static_cast<int64_t>(found.kind)},
                          {"folder", found.folder.string()},
                          {"is_own", found.is_own},
                          {"is_restart", found.is_restart}});
    if (found.lineage.is_known()) message["lineage"] = to_value(found.lineage);
  }
  message = parse_json(rendezvous.from_rank_zero(what, to_json(message)));
  Finding found{static_cast<Kind>(message.at("kind").as_integer()),
                message.at("folder").as_string(), message.at("is_own").as_boolean(),
                message.at("is_restart").as_boolean()};
  if (const Value* lineage = message.find("lineage"))
    found.lineage = parse_lineage(Members(*lineage, what, "lineage."));
  return found;
}

/// The newest local checkpoint, if it is newer than `found`.
std::optional<StartPoint> opened_local(const Finding& found, const JobConfig& config,
                                       Rendezvous& rendezvous) {
  const CheckpointSection& section = config.checkpoint;
  if (!section.enable || section.load_only || !section.local_folder || found.kind == Kind::done)
    return std::nullopt;
  const auto from_all = [&](const std::string& name, const std::string& own) {
    return rendezvous.from_all(name, own);
  };
  const int64_t step =
      found.is_own ? step_of_name(found.folder.filename().string()).value_or(0) : 0;
  std::vector<std::string> notes;
  auto local =
      find_local_checkpoint(local_run(config, rendezvous), start_of(section),
                            found.is_own ? found.lineage : Lineage(), step, from_all, notes);
  if (rendezvous.launch().rank == 0)
    for (const std::string& note : notes) log::warn(note);
  if (!local) return std::nullopt;
  StartPoint start = {.kind = Kind::checkpoint,
                      .folder = std::move(local->folder),
                      .is_own = true,
                      .is_restart = true,
                      .lineage = std::move(local->lineage),
                      .manifest = std::move(local->manifest),
                      .index = std::move(local->index),
                      .texts = std::move(local->texts)};
  choose_parts(start, section);
  return start;
}

Finding with_weights(const std::filesystem::path& folder) {
  return {marker_of(folder) == Marker::manifest ? Kind::checkpoint : Kind::hugging_face, folder};
}

}  // namespace

std::filesystem::path folder_of_weights(const std::filesystem::path& folder,
                                        const std::string& key) {
  TITAN_CHECK(std::filesystem::is_directory(folder), config, key, ": there is no folder ",
              folder.string());
  const Marker marker = marker_of(folder);
  TITAN_CHECK(marker != Marker::dcp, config, key, ": ", folder.string(),
              " is a checkpoint in torch's pickled format, which cannot be read here; see: titan "
              "convert --help");
  if (marker != Marker::none || std::filesystem::is_regular_file(folder / "config.json"))
    return folder;
  if (const auto newest = Branches(folder).newest_step({Marker::manifest, Marker::hf_index}))
    return newest->path;
  fail(ErrorKind::config, key, ": ", folder.string(),
       " holds no manifest.json, no Hugging Face weights and no complete step");
}

LocalRun local_run(const JobConfig& config, const Rendezvous& rendezvous) {
  const LaunchEnv& launch = rendezvous.launch();
  return {*config.checkpoint.local_folder,
          checkpoint_folder(config),
          launch.rank,
          launch.world_size,
          launch.local_rank,
          launch.local_world_size};
}

StartPoint find_start(const JobConfig& config, Rendezvous& rendezvous) {
  auto in_use = std::make_shared<FolderUse>();
  const auto find_and_keep = [&] {
    for (;;) {
      Finding found = find(config);
      if (found.kind != Kind::checkpoint || in_use->take(found.folder)) return found;
      // another replica group is removing it: there is a newer one
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      in_use = std::make_shared<FolderUse>();
    }
  };
  const Finding found = found_by_rank_zero(rendezvous, "start point", find_and_keep);
  std::optional<StartPoint> local = opened_local(found, config, rendezvous);
  StartPoint start = local ? std::move(*local) : opened(found, config.checkpoint);
  if (rendezvous.launch().rank != 0 && start.kind == Kind::checkpoint) in_use->take(start.folder);
  start.in_use = std::move(in_use);
  return start;
}

bool names_reference(const JobConfig& config) {
  const CheckpointSection& section = config.checkpoint;
  return config.reference.checkpoint ||
         (section.enable && (section.initial_load_path || section.initial_load_in_hf));
}

std::filesystem::path folder_of_reference(const JobConfig& config) {
  const auto& folder = config.reference.checkpoint;
  if (!folder || !std::filesystem::is_directory(*folder)) return {};
  return folder_of_weights(*folder, "reference.checkpoint");
}

StartPoint find_reference(const JobConfig& config, Rendezvous& rendezvous) {
  CheckpointSection only_weights = config.checkpoint;
  only_weights.initial_load_model_only = true;
  const auto find = [&]() -> Finding {
    const auto& folder = config.reference.checkpoint;
    if (folder)
      return with_weights(folder_of_weights(*folder, "reference.checkpoint = '" + *folder + "'"));
    TITAN_CHECK(names_reference(config), config,
                "there is no reference model: set reference.checkpoint");
    return initial(only_weights, config.model.hf_assets_path);
  };
  return opened(found_by_rank_zero(rendezvous, "reference", find), only_weights);
}

StartPoint start_with_weights(const std::filesystem::path& folder,
                              const CheckpointSection& section) {
  CheckpointSection only_weights = section;
  only_weights.initial_load_model_only = true;
  return opened(with_weights(folder), only_weights);
}

FeedState read_data_position(const StartPoint& start, int64_t num_rows, int64_t first_row,
                             int64_t num_own_rows) {
  std::optional<FeedState> position;
  std::vector<bool> is_wanted;  // by stream
  int64_t num_old_rows = 0;     // of the global batch when the checkpoint was written
  for (const ManifestFile& file : start.manifest.files)
    num_old_rows = std::max(num_old_rows, file.first_row + file.num_rows);
  for (const ManifestFile& file : start.manifest.files) {
    if (file.num_rows == 0) continue;
    if (position) {  // a file's rows determine its streams, so most files need not be read
      const std::vector<int64_t> streams = own_streams(position->num_streams, position->num_windows,
                                                       num_old_rows, file.first_row, file.num_rows);
      const auto wants = [&](int64_t stream) { return is_wanted[static_cast<size_t>(stream)]; };
      if (std::none_of(streams.begin(), streams.end(), wants)) continue;
    }
    FeedState part = FeedState::from_value(read_checked(start, file).at(kLoaderMember));
    if (position) {
      std::move(part.streams.begin(), part.streams.end(), std::back_inserter(position->streams));
      continue;
    }
    position = std::move(part);
    is_wanted.resize(static_cast<size_t>(position->num_streams));
    for (const int64_t stream : own_streams(position->num_streams, position->num_windows, num_rows,
                                            first_row, num_own_rows))
      is_wanted[static_cast<size_t>(stream)] = true;
  }
  TITAN_CHECK(position, data, "the checkpoint in '", start.folder.string(),
              "' holds no data position");
  return std::move(*position);
}

std::optional<Value> read_random_state(const StartPoint& start, int rank, int world_size) {
  if (start.manifest.layout.world_size() != world_size) return std::nullopt;
  for (const ManifestFile& file : start.manifest.files)
    if (file.name == rank_state_name(rank)) return read_checked(start, file).at(kRandomMember);
  return std::nullopt;
}

Value read_watcher_states(const StartPoint& start) {
  for (const ManifestFile& file : start.manifest.files)
    if (file.name == rank_state_name(0)) {
      const Value state = read_checked(start, file);
      if (const Value* watchers = state.find(kWatchersMember)) return *watchers;
    }
  return Value::map();
}

}  // namespace titan::core
