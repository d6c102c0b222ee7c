// See wandb_options.h.
#include "wandb_options.h"

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/environment.h"

namespace titan::loggers {
namespace {

void take_mode(const WandbOptions& options, WandbSettings& settings) {
  settings.is_disabled = options.mode == WandbMode::disabled;
  if (options.mode != WandbMode::automatic) return;
  const std::string mode = option_or_environment("", {"WANDB_MODE"});
  settings.is_disabled = mode == "disabled";
  settings.wants_upload = mode == "online" || mode == "shared";
  TITAN_CHECK(mode.empty() || settings.is_disabled || settings.wants_upload || mode == "offline" ||
                  mode == "dryrun",
              config, "WANDB_MODE must be online, offline, shared or disabled, got ",
              in_quotes(mode));
}

constexpr const char* kAllowedIds = "use letters, digits, '-' and '_', at most 128 of them";

bool is_run_id(const std::string& id) {
  return id.find_first_of("/\\:;,#?'\"% \n\t") == id.npos && id.size() <= 128;
}

}  // namespace

WandbSettings wandb_settings(const WandbOptions& options) {
  WandbSettings settings;
  take_mode(options, settings);
  settings.project = option_or_environment(options.project, {"WANDB_PROJECT"});
  if (settings.project.empty()) settings.project = "torchtitan";
  settings.team = option_or_environment(options.team, {"WANDB_TEAM", "WANDB_ENTITY"});
  settings.name = option_or_environment(options.name, {"WANDB_RUN_NAME", "WANDB_NAME"});
  settings.run_id = option_or_environment(options.run_id, {"WANDB_RUN_ID"});
  TITAN_CHECK(is_run_id(settings.run_id), config, "run id ", in_quotes(settings.run_id),
              " cannot be part of a file name; ", kAllowedIds);
  settings.notes = option_or_environment(options.notes, {"WANDB_RUN_NOTES", "WANDB_NOTES"});
  settings.tags = options.tags;
  if (settings.tags.empty())
    settings.tags = split_at_commas(option_or_environment("", {"WANDB_RUN_TAGS", "WANDB_TAGS"}));
  settings.group = option_or_environment(options.group, {"WANDB_RUN_GROUP"});
  settings.job_type =
      option_or_environment(options.job_type, {"WANDB_RUN_JOB_TYPE", "WANDB_JOB_TYPE"});
  settings.folder = option_or_environment(options.folder.string(), {"WANDB_DIR"});
  for (const char* variable : {"WANDB_RESUME_FROM", "WANDB_FORK_FROM"})
    if (!option_or_environment("", {variable}).empty())
      settings.without_effect.emplace_back(variable);
  return settings;
}

void check_wandb_options(const WandbOptions& options, const JobView&, RuleReport& report) {
  if (!is_run_id(options.run_id))
    report.error("run_id", "cannot be part of a file name, got " + in_quotes(options.run_id),
                 kAllowedIds);
}

}  // namespace titan::loggers
