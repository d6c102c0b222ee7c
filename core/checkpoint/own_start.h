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
    fresh,       ///< nothing is there
    checkpoint,  ///< a folder with a manifest
    done,        ///< the last step's weights are there: nothing is left to do
  };
  Kind kind = Kind::fresh;
  std::filesystem::path folder;  ///< of the step
  bool is_restart = false;       ///< checkpoint.load_step and exclude_from_loading are not applied
  Lineage lineage;               ///< of what the run will save
};

/// [rank 0] Looks into [checkpoint] folder.
///
/// checkpoint.load_step and exclude_from_loading begin a branch: the first start that asks for them
/// applies them and writes them into the manifests of what it saves. A start that finds them
/// written there is a restart, however it was started: it continues that branch after its newest
/// step. Without them a start continues the branch that began last. Steps of other branches are
/// named in a warning and left alone. With load_only nothing is recorded, so each start applies
/// them.
///
/// `has_initial`: the job can start elsewhere, so an empty folder is no error for load_step. Throws
/// as find_start.
OwnStart find_own_start(const JobConfig& config, bool has_initial);

/// [checkpoint] folder under [job] dump_folder.
std::filesystem::path checkpoint_folder(const JobConfig& config);

/// The complete step `wanted` among `steps` of `folder`. Throws a config Error that lists the
/// steps there are.
CheckpointStep asked_step(const std::vector<CheckpointStep>& steps, int64_t wanted,
                          const std::filesystem::path& folder);
/// Throws a data Error for a pickled checkpoint of torch.
void refuse_foreign(const CheckpointStep& step);

}  // namespace titan::core
