// A client for the requests of MLflow's REST API that a run needs. Used by mlflow_sender.h.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <titan/value.h>

#include "mlflow_names.h"
#include "mlflow_options.h"
#include "post_process.h"

namespace titan::loggers {

/// No answer, or a temporary server error: retry later. The server may have executed the request.
class MlflowUnreachable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The server rejected the request: a retry would fail again.
class MlflowRefusal : public std::runtime_error {
 public:
  MlflowRefusal(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

struct MlflowPoint {
  std::string key;  ///< from mlflow_key
  double value = 0;
  int64_t step = 0;
  int64_t time_ms = 0;  ///< since 1970
};

/// The server's state of a run.
struct MlflowRunState {
  std::map<std::string, int64_t> last_steps;  ///< by metric
  std::set<std::string> params;
};

/// Limits of one log-batch request.
inline constexpr size_t kMlflowMostMetrics = 1000, kMlflowMostParams = 100;

/// Every call throws MlflowUnreachable or MlflowRefusal. One thread at a time.
class MlflowClient {
 public:
  MlflowClient(const MlflowSettings& settings, PostProcess& post)
      : settings_(settings), post_(post) {}

  /// The id of the experiment `name`, which is created if needed.
  std::string experiment_of(const std::string& name);
  /// Creates a run with tags (key, value). Empty name: the server generates one.
  std::string create_run(const std::string& experiment_id, const std::string& name,
                         int64_t start_time_ms, const MlflowParams& tags);
  /// The id of the run with this tag; empty: none.
  std::string find_run(const std::string& experiment_id, const std::string& tag,
                       const std::string& value);
  MlflowRunState run_state(const std::string& run_id);
  /// `status`: RUNNING, FINISHED, FAILED or KILLED. `end_time_ms`: 0 = still running.
  void set_status(const std::string& run_id, const std::string& status, int64_t end_time_ms);
  void log_points(const std::string& run_id, std::span<const MlflowPoint> points);
  void log_params(const std::string& run_id, std::span<const MlflowParams::value_type> params);

 private:
  Value get(const std::string& what, const std::string& name, const std::string& value);
  Value post(const std::string& what, Value body);
  Value call(const std::string& what, Value request);

  const MlflowSettings& settings_;
  PostProcess& post_;
};

}  // namespace titan::loggers
