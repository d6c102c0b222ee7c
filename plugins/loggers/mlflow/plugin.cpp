// Registers the logger `mlflow`.
#include <titan/plugin.h>

#include "mlflow_logger.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::loggers::MlflowOptions;
  plugin
      .add<titan::loggers::MlflowLogger>(
          "mlflow", "Sends scalars and the configuration to an MLflow tracking server.")
      .option("tracking_uri", &Options::tracking_uri,
              "Address of the server, http:// or https://; default MLFLOW_TRACKING_URI")
      .option("experiment_name", &Options::experiment_name,
              "Made where there is none of this name; default MLFLOW_EXPERIMENT_NAME, else titan")
      .option("run_name", &Options::run_name, "Name that is shown; default: the server draws one")
      .option("run_id", &Options::run_id,
              "Goes on with a run that is there; default MLFLOW_RUN_ID, else a new one, kept when "
              "the run is resumed")
      .option("request_timeout", &Options::request_timeout, "Longest wait for one answer")
      .at_least(0.1)
      .option("finish_timeout", &Options::finish_timeout,
              "Longest wait at the end of the run for what is not sent yet")
      .at_least(0)
      .check(titan::loggers::check_mlflow_options);
}
