// Where a run starts: from nothing, from its own newest checkpoint, or from weights of others. Used
// by the trainer's assembly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/tensor_index.h>

#include "core/config/schema/job_config.h"
#include "core/data/window_feed.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

struct StartPoint {
  enum class Kind {
    fresh,         ///< initial values
    checkpoint,    ///< a folder with a manifest
    shards,        ///< safetensors under our names, without a manifest: weights
    hugging_face,  ///< weights under Hugging Face's names
    done,          ///< the last step's weights are there: nothing is left to do
  };
  Kind kind = Kind::fresh;
  std::filesystem::path folder;
  bool is_own = false;      ///< of this run's own checkpoint folder
  bool is_restart = false;  ///< it continues a branch: what its beginning left out is loaded now
  Lineage lineage;          ///< of what the run saves; not known where checkpoints are off
  CheckpointManifest manifest;  ///< of a checkpoint
  TensorIndex index;            ///< of everything but fresh and done

  // what is taken over
  bool loads_optimizer = false, loads_data = false, loads_train_state = false, loads_lr = false;

  bool loads_weights() const { return kind != Kind::fresh && kind != Kind::done; }
};

/// Rank 0 looks, all ranks learn: the run's own folder first (own_start.h), then
/// initial_load_path or, with initial_load_in_hf, hf_assets_path. Headers are read and checked, no
/// tensor is. Config Error: a folder or step that is not there, one that holds weights only where
/// more is asked for; data Error: damage.
StartPoint find_start(const JobConfig& config, Rendezvous& rendezvous);

/// The weights of a complete checkpoint of ours or of a Hugging Face folder, and nothing else of
/// it. Throws a data Error: damage; an io Error: there is nothing to read.
StartPoint start_with_weights(const std::filesystem::path& folder,
                              const CheckpointSection& section);

/// The weights of the reference model: [reference] checkpoint, a step of ours, a folder of steps or
/// a Hugging Face folder; else those that [checkpoint] starts a new run with, whatever this one has
/// reached. Rank 0 looks, all ranks learn. Throws as find_start, and a config Error where neither
/// is given.
StartPoint find_reference(const JobConfig& config, Rendezvous& rendezvous);
/// Whether find_reference has a key to follow.
bool names_reference(const JobConfig& config);
/// Where it would look, for simulations of a run that read no weights; empty: nothing is there, or
/// the run's own start.
std::filesystem::path folder_of_reference(const JobConfig& config);

/// `folder` itself when it holds weights, ours or Hugging Face's, or its newest complete step.
/// Config Error that begins with `key`: there is none.
std::filesystem::path folder_of_weights(const std::filesystem::path& folder,
                                        const std::string& key);

/// The data position out of the checkpoint's files, with the lanes of at least those streams that
/// rows [first_row, first_row + num_own_rows) of steps of `num_rows` rows go on with. data Error:
/// there is none, or a file is damaged.
FeedState read_data_position(const StartPoint& start, int64_t num_rows, int64_t first_row,
                             int64_t num_own_rows);

/// The state of the generators (rank_state.h) of the same rank of the same number of ranks; nothing
/// when the checkpoint was written by another number.
std::optional<Value> read_random_state(const StartPoint& start, int rank, int world_size);

}  // namespace titan::core
