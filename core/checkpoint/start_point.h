// Finds where a run starts: initial values, its own newest checkpoint, or imported weights. Used by
// the trainer's assembly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <titan/checkpoints/local_parts.h>
#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/tensor_index.h>

#include "core/checkpoint/folder_use.h"
#include "core/config/schema/job_config.h"
#include "core/data/window_feed.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

struct StartPoint {
  enum class Kind {
    fresh,         ///< initial values
    checkpoint,    ///< a folder with a manifest
    shards,        ///< weights: safetensors under Titan's names, without a manifest
    hugging_face,  ///< weights under Hugging Face's names
    done,          ///< the weights of the last step exist: nothing is left to do
  };
  Kind kind = Kind::fresh;
  std::filesystem::path folder;
  bool is_own = false;          ///< from this run's own checkpoint folder
  bool is_restart = false;      ///< it continues a branch: exclude_from_loading no longer applies
  Lineage lineage;              ///< of the checkpoints that the run saves; unknown if they are off
  CheckpointManifest manifest;  ///< of a checkpoint
  TensorIndex index;            ///< of every kind but fresh and done
  std::shared_ptr<const FolderUse> in_use;   ///< while this lives, no other job removes the folder
  std::map<std::string, std::string> texts;  ///< of a local checkpoint: its files without tensors

  // what is loaded besides the weights
  bool loads_optimizer = false, loads_data = false, loads_train_state = false, loads_lr = false;

  bool loads_weights() const { return kind != Kind::fresh && kind != Kind::done; }
};

/// For local checkpoints; with [checkpoint] local_folder only.
LocalRun local_run(const JobConfig& config, const Rendezvous& rendezvous);

/// Collective: rank 0 searches and sends its result to all ranks. It searches the run's own folder
/// (own_start.h), then initial_load_path or, with initial_load_in_hf, hf_assets_path. Reads and
/// checks headers, no tensors. Throws a config Error for a folder or step that does not exist, and
/// for one that holds only weights where more is requested; a data Error for damage.
StartPoint find_start(const JobConfig& config, Rendezvous& rendezvous);

/// Only the weights of a complete Titan checkpoint or of a Hugging Face folder. Throws a data Error
/// for damage, an io Error when there is nothing to read.
StartPoint start_with_weights(const std::filesystem::path& folder,
                              const CheckpointSection& section);

/// The weights of the reference model: [reference] checkpoint (a Titan checkpoint, a folder of
/// checkpoints or a Hugging Face folder); else the weights with which [checkpoint] starts a new
/// run, even if this run has trained further. Collective: rank 0 searches. Throws as find_start,
/// and a config Error when neither is given.
StartPoint find_reference(const JobConfig& config, Rendezvous& rendezvous);
/// Whether the configuration has a key that find_reference uses.
bool names_reference(const JobConfig& config);
/// The folder that find_reference would read, for simulated runs that load no weights. Empty: it
/// does not exist, or the run's own start is used.
std::filesystem::path folder_of_reference(const JobConfig& config);

/// `folder` itself when it holds Titan's or Hugging Face weights, else its newest complete step.
/// Throws a config Error that begins with `key` when there is none.
std::filesystem::path folder_of_weights(const std::filesystem::path& folder,
                                        const std::string& key);

/// The data position from the checkpoint's files, with at least the streams that rows
/// [first_row, first_row + num_own_rows) continue, in steps of `num_rows` rows. Throws a data Error
/// when there is none or a file is damaged.
FeedState read_data_position(const StartPoint& start, int64_t num_rows, int64_t first_row,
                             int64_t num_own_rows);

/// The state of this rank's generators (rank_state.h); nothing when another number of ranks wrote
/// the checkpoint.
std::optional<Value> read_random_state(const StartPoint& start, int rank, int world_size);

/// The states of watchers by name, which rank 0 saved for all ranks; an empty map if there are
/// none.
Value read_watcher_states(const StartPoint& start);

}  // namespace titan::core
