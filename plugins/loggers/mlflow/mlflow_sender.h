// A thread that sends logged values to an MLflow server and tolerates its failures. Used by the
// mlflow logger.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <titan/logger.h>

#include "mlflow_client.h"
#include "mlflow_names.h"
#include "mlflow_options.h"
#include "post_process.h"

namespace titan::loggers {

/// The run to create or continue on the server.
struct MlflowRun {
  std::string id;                 ///< of an existing run; empty: a new one
  std::string name;               ///< of a new run; empty: the server generates one
  bool may_be_new = false;        ///< creates a new run when the server does not know `id`
  int64_t start_time_ms = 0;      ///< since 1970
  MlflowParams params;            ///< values that the server already has are kept
  MlflowParams tags;              ///< of a new run
  std::filesystem::path id_file;  ///< gets the id, see remembered_run.h
};

/// While the server does not answer, up to 200,000 values are queued; then the oldest are dropped.
/// The server gets a value once: after a request without an answer, and when a run is resumed, the
/// sender first asks for the server's last step of each metric.
class MlflowSender {
 public:
  MlflowSender(MlflowSettings settings, MlflowRun run);
  ~MlflowSender();
  MlflowSender(const MlflowSender&) = delete;

  /// Throws an io Error when the server has rejected the run.
  void add(std::vector<MlflowPoint> points);
  /// Sends queued values and the run's outcome, for at most finish_timeout. Logs the number of lost
  /// values.
  void finish(RunOutcome outcome) noexcept;

 private:
  void work() noexcept;
  void open();
  void make_run();
  void send_params();
  void look_what_is_there();
  /// Fills batch_ with the next queued points that the server lacks; waits for them. False: the run
  /// has ended and the queue is empty.
  bool next_batch();
  void send_batch();
  /// Whether to try again.
  bool wait_after_failure();
  void warn_once(const std::string& problem);
  void stop_thread(std::chrono::steady_clock::time_point deadline);

  const MlflowSettings settings_;
  MlflowRun run_;
  PostProcess post_;
  MlflowClient client_;

  // used by the thread only
  bool is_open_ = false, is_unsure_ = false, has_warned_ = false, was_warned_of_refusal_ = false;
  int failures_ = 0;                // since the last answer
  std::vector<MlflowPoint> batch_;  // the request in flight
  std::string experiment_id_, session_;
  MlflowRunState there_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<MlflowPoint> waiting_;
  int64_t num_lost_ = 0;
  bool is_ending_ = false, is_given_up_ = false, is_done_ = false;
  RunOutcome outcome_ = RunOutcome::finished;
  std::string refusal_;  // why nothing more is sent
  bool was_refusal_thrown_ = false;

  std::thread thread_;
};

}  // namespace titan::loggers
