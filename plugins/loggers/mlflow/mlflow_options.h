// Where a run is sent and what it is called there. Used by the mlflow logger.
#pragma once

#include <string>

#include <titan/job_view.h>
#include <titan/options.h>

namespace titan::loggers {

/// Empty: as the environment says.
struct MlflowOptions {
  std::string tracking_uri, experiment_name, run_name, run_id;
  Duration request_timeout = {10}, finish_timeout = {8};
};

/// The options with what the environment adds. Secrets stand in the environment alone: the options
/// are written to config.toml and sent as parameters.
struct MlflowSettings {
  std::string server;  ///< without a slash at its end, and without a name and password
  std::string experiment_id, experiment_name, run_name, run_id;
  std::string user, password;  ///< basic authentication; empty user: none
  std::string token;           ///< bearer authentication, unless empty; comes before the user
  std::string ca_file;         ///< certificates to trust; empty: the system's
  double request_timeout_s = 10, finish_timeout_s = 8;
};

/// Throws a config Error when there is no address, or one that is not of a server.
MlflowSettings mlflow_settings(const MlflowOptions& options);

/// Reports an address that cannot be.
void check_mlflow_options(const MlflowOptions& options, const JobView& job, RuleReport& report);

}  // namespace titan::loggers
