// See mlflow_options.h.
#include "mlflow_options.h"

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/environment.h"

namespace titan::loggers {
namespace {

bool is_server(const std::string& uri) {
  return uri.starts_with("http://") || uri.starts_with("https://");
}

/// Moves NAME:PASSWORD@ from the address to user and password.
void take_credentials(MlflowSettings& settings) {
  const size_t begin = settings.server.find("://") + 3;
  const size_t end = settings.server.find('/', begin);
  const size_t at = settings.server.substr(0, end).rfind('@');
  if (at == std::string::npos || at < begin) return;
  const std::string credentials = settings.server.substr(begin, at - begin);
  settings.server.erase(begin, at + 1 - begin);
  const size_t colon = credentials.find(':');
  settings.user = credentials.substr(0, colon);
  if (colon != std::string::npos) settings.password = credentials.substr(colon + 1);
}

}  // namespace

MlflowSettings mlflow_settings(const MlflowOptions& options) {
  const auto variable = [](const char* name) { return option_or_environment("", {name}); };
  MlflowSettings settings = {
      .server = option_or_environment(options.tracking_uri, {"MLFLOW_TRACKING_URI"}),
      .experiment_name = option_or_environment(options.experiment_name, {"MLFLOW_EXPERIMENT_NAME"}),
      .run_name = option_or_environment(options.run_name, {"MLFLOW_RUN_NAME"}),
      .run_id = option_or_environment(options.run_id, {"MLFLOW_RUN_ID"}),
      .user = variable("MLFLOW_TRACKING_USERNAME"),
      .password = variable("MLFLOW_TRACKING_PASSWORD"),
      .token = variable("MLFLOW_TRACKING_TOKEN"),
      .ca_file = option_or_environment(
          "", {"MLFLOW_TRACKING_SERVER_CERT_PATH", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}),
      .request_timeout_s = options.request_timeout.seconds,
      .finish_timeout_s = options.finish_timeout.seconds};
  TITAN_CHECK(!settings.server.empty(), config,
              "no MLflow server is given: set tracking_uri in [logger.mlflow] or "
              "MLFLOW_TRACKING_URI to http://HOST:PORT");
  TITAN_CHECK(is_server(settings.server), config,
              "the address of the MLflow server must begin with http:// or https://, got ",
              in_quotes(settings.server), "; start one by: mlflow server");
  take_credentials(settings);
  while (settings.server.ends_with('/')) settings.server.pop_back();
  if (settings.experiment_name.empty()) settings.experiment_id = variable("MLFLOW_EXPERIMENT_ID");
  if (settings.experiment_name.empty()) settings.experiment_name = "titan";
  return settings;
}

void check_mlflow_options(const MlflowOptions& options, const JobView&, RuleReport& report) {
  const std::string& uri = options.tracking_uri;
  if (uri.empty()) return;
  if (!is_server(uri))
    report.error("tracking_uri", "must begin with http:// or https://, got " + in_quotes(uri),
                 "start a server by: mlflow server");
  else if (uri.find('@') != uri.npos)
    report.error("tracking_uri", "holds a password, which would be written to config.toml",
                 "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead");
}

}  // namespace titan::loggers
