// Options of the wandb logger, which name and classify the run at Weights & Biases.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/job_view.h>

namespace titan::loggers {

enum class WandbMode { automatic, offline, disabled };

/// Empty: from the environment.
struct WandbOptions {
  WandbMode mode = WandbMode::automatic;
  std::string project, team, name, run_id, notes;
  std::vector<std::string> tags;
  std::string group, job_type;
  std::filesystem::path folder;
};

/// The options completed from the environment: torchtitan's variables before wandb's own.
struct WandbSettings {
  bool is_disabled = false;
  bool wants_upload = false;  ///< WANDB_MODE=online was set explicitly
  std::string project, team, name, run_id, notes;
  std::vector<std::string> tags;
  std::string group, job_type;
  std::filesystem::path folder;             ///< empty: the run's own
  std::vector<std::string> without_effect;  ///< variables that are set but not supported
};

/// Throws a config Error for an invalid WANDB_MODE and for a run id that cannot be part of a file
/// name.
WandbSettings wandb_settings(const WandbOptions& options);

/// Reports an invalid run id.
void check_wandb_options(const WandbOptions& options, const JobView& job, RuleReport& report);

}  // namespace titan::loggers
