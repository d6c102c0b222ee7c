// Where a run continues in its own checkpoint folder, and on which branch of it. Used by
// find_start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <titan/checkpoints/branches.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

struct OwnStart {
  enum class Kind {
    fresh,       ///< the folder holds no checkpoint
    checkpoint,  ///< a folder with a manifest
    done,        ///< the weights of the last step exist: nothing is left to do
  };
  Kind kind = Kind::fresh;
  std::filesystem::path folder;  ///< of the step
  bool is_restart = false;       ///< checkpoint.load_step and exclude_from_loading are not applied
  Lineage lineage;               ///< of the checkpoints that the run will save
};

/// [rank 0] Searches [checkpoint] folder.
///
/// checkpoint.load_step and exclude_from_loading begin a branch: the first start with these keys
/// applies them and writes them into the manifests that it saves. A start that finds its keys
/// recorded there is a restart: it continues that branch after its newest step. A start without
/// these keys continues the newest branch. Steps of other branches are named in a warning and left
/// alone. With load_only nothing is recorded, so each start applies the keys.
///
/// `has_initial`: the job has an initial_load_path or similar, so load_step may name an empty
/// folder. Throws as find_start.
OwnStart find_own_start(const JobConfig& config, bool has_initial);

/// The keys that begin a branch.
BranchStart start_of(const CheckpointSection& section);

/// [checkpoint] folder under [job] dump_folder.
std::filesystem::path checkpoint_folder(const JobConfig& config);

/// The complete step `wanted` among `steps` of `folder`. Throws a config Error that lists the
/// existing steps.
CheckpointStep asked_step(const std::vector<CheckpointStep>& steps, int64_t wanted,
                          const std::filesystem::path& folder);
/// Throws a data Error for a pickled checkpoint of torch.
void refuse_foreign(const CheckpointStep& step);

}  // namespace titan::core
