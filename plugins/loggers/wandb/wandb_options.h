// How a run is called at Weights & Biases. Used by the wandb logger.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/job_view.h>

namespace titan::loggers {

enum class WandbMode { automatic, offline, disabled };

/// Empty: as the environment says.
struct WandbOptions {
  WandbMode mode = WandbMode::automatic;
  std::string project, team, name, run_id, notes;
  std::vector<std::string> tags;
  std::string group, job_type;
  std::filesystem::path folder;
};

/// The options with what the environment adds: torchtitan's variables before wandb's own.
struct WandbSettings {
  bool is_disabled = false;
  bool wants_upload = false;  ///< WANDB_MODE=online was asked for in so many words
  std::string project, team, name, run_id, notes;
  std::vector<std::string> tags;
  std::string group, job_type;
  std::filesystem::path folder;             ///< empty: the run's own
  std::vector<std::string> without_effect;  ///< variables that are set and cannot be followed
};

/// Throws a config Error for a WANDB_MODE that is none, and for a run id that cannot be part of a
/// file name.
WandbSettings wandb_settings(const WandbOptions& options);

/// Reports a run id that cannot be.
void check_wandb_options(const WandbOptions& options, const JobView& job, RuleReport& report);

}  // namespace titan::loggers
