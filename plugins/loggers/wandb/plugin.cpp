// Registers the logger `wandb`.
#include <titan/plugin.h>

#include "wandb_logger.h"

TITAN_PLUGIN(plugin) {
  using titan::loggers::WandbMode;
  using Options = titan::loggers::WandbOptions;
  plugin
      .add<titan::loggers::WandbLogger>(
          "wandb", "Writes the run in the format of Weights & Biases, for upload with wandb sync.")
      .option("mode", &Options::mode,
              "'offline' writes files; 'disabled' writes nothing; 'auto' follows WANDB_MODE",
              {{"auto", WandbMode::automatic},
               {"offline", WandbMode::offline},
               {"disabled", WandbMode::disabled}})
      .option("project", &Options::project, "Default WANDB_PROJECT, else torchtitan")
      .option("team", &Options::team,
              "Team or user that owns the run; default WANDB_TEAM or WANDB_ENTITY, else that "
              "of the uploading account")
      .option("name", &Options::name, "Displayed name; default WANDB_RUN_NAME or WANDB_NAME")
      .option("run_id", &Options::run_id,
              "Default WANDB_RUN_ID, else a new one, kept when the run is resumed")
      .option("notes", &Options::notes,
              "Default WANDB_RUN_NOTES or WANDB_NOTES, else job.description")
      .option("tags", &Options::tags,
              "Default WANDB_RUN_TAGS or WANDB_TAGS, which are split at commas")
      .option("group", &Options::group, "Default WANDB_RUN_GROUP")
      .option("job_type", &Options::job_type, "Default WANDB_RUN_JOB_TYPE or WANDB_JOB_TYPE")
      .option("folder", &Options::folder,
              "Folder that gets wandb/<run's folder>; default WANDB_DIR, else "
              "job.dump_folder")
      .check(titan::loggers::check_wandb_options);
}
