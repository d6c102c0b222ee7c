// A thread that brings what is logged to an MLflow server, whatever the server does meanwhile. Used
// by the mlflow logger.
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

/// The run as it is to appear on the server.
struct MlflowRun {
  std::string id;                 ///< of a run that is there; empty: a new one
  std::string name;               ///< of a new one; empty: the server draws it
  bool may_be_new = false;        ///< when the server does not know `id`, a new one is made
  int64_t start_time_ms = 0;      ///< since 1970
  MlflowParams params;            ///< those that the server has already stay as they are
  MlflowParams tags;              ///< of a new run
  std::filesystem::path id_file;  ///< gets the id, see remembered_run.h
};

/// What waits to be sent is kept while the server does not answer, up to 200,000 values; then the
/// oldest are dropped. A value reaches the server once: after a request whose fate is unknown, and
/// when a run is resumed, the server is asked for the last step that it has of each metric.
class MlflowSender {
 public:
  MlflowSender(MlflowSettings settings, MlflowRun run);
  ~MlflowSender();
  MlflowSender(const MlflowSender&) = delete;

  /// Throws an io Error when the server has refused the run.
  void add(std::vector<MlflowPoint> points);
  /// Sends what is left and how the run ended, for finish_timeout at most. Says what was lost.
  void finish(RunOutcome outcome) noexcept;

 private:
  void work() noexcept;
  void open();
  void make_run();
  void send_params();
  void look_what_is_there();
  /// Fills batch_ with the next points, of those that the server lacks; waits for them. False: the
  /// run has ended, and there are none.
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

  // of the thread
  bool is_open_ = false, is_unsure_ = false, has_warned_ = false, was_warned_of_refusal_ = false;
  int failures_ = 0;                // since the last answer
  std::vector<MlflowPoint> batch_;  // what is on its way
  std::string experiment_id_, session_;
  MlflowRunState there_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<MlflowPoint> waiting_;
  int64_t num_lost_ = 0;
  bool is_ending_ = false, is_given_up_ = false, is_done_ = false;
  RunOutcome outcome_ = RunOutcome::finished;
  std::string refusal_;  // why nothing is sent any more
  bool was_refusal_thrown_ = false;

  std::thread thread_;
};

}  // namespace titan::loggers
