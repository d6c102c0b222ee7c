// Options of the mlflow logger: server address, credentials, and names of run and experiment.
#pragma once

#include <string>

#include <titan/job_view.h>
#include <titan/options.h>

namespace titan::loggers {

/// Empty: from the environment.
struct MlflowOptions {
  std::string tracking_uri, experiment_name, run_name, run_id;
  Duration request_timeout = {10}, finish_timeout = {8};
};

/// The options completed from the environment. Credentials come only from the environment, because
/// options are written to config.toml and sent as parameters.
struct MlflowSettings {
  std::string server;  ///< without a trailing slash, user name and password
  std::string experiment_id, experiment_name, run_name, run_id;
  std::string user, password;  ///< basic authentication; empty user: none
  std::string token;           ///< bearer authentication, unless empty; takes precedence over user
  std::string ca_file;         ///< certificates to trust; empty: the system's
  double request_timeout_s = 10, finish_timeout_s = 8;
};

/// Throws a config Error when the address is missing or invalid.
MlflowSettings mlflow_settings(const MlflowOptions& options);

/// Reports an invalid address.
void check_mlflow_options(const MlflowOptions& options, const JobView& job, RuleReport& report);

}  // namespace titan::loggers
