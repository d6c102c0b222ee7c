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
      .option(
          "experiment_name", &Options::experiment_name,
          "Name of the experiment, created if needed; default MLFLOW_EXPERIMENT_NAME, else titan")
      .option("run_name", &Options::run_name, "Displayed name; default: the server generates one")
      .option("run_id", &Options::run_id,
              "Continues an existing run; default MLFLOW_RUN_ID, else a new run, which is "
              "continued when "
              "the run is resumed")
      .option("request_timeout", &Options::request_timeout, "Longest wait for one answer")
      .at_least(0.1)
      .option("finish_timeout", &Options::finish_timeout,
              "Longest wait at the end of the run for values that are not sent yet")
      .at_least(0)
      .check(titan::loggers::check_mlflow_options);
}
