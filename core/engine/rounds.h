// Trains in rounds under `titan launch --in-process`. After a failure the process stays, with its
// plugins and its device, destroys its run and builds another one in the next round. Used by
// training.cpp.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <titan/error.h>
#include <titan/program/rank_control.h>

#include "core/runtime/groups/failure_watch.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/runtime/launch_env.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// Thread: trainer thread.
class Rounds {
 public:
  /// `launch`: of this process; each round says its rank.
  Rounds(ControlEnd control, LaunchEnv launch);
  ~Rounds();
  Rounds(const Rounds&) = delete;

  struct Next {
    std::optional<LaunchEnv> launch;  ///< of the round that begins
    int exit_code = 0;                ///< without a round: this process ends
  };
  /// Reports that nothing of a round is left here, and waits for the next one.
  Next wait();

  /// Whether the launcher has aborted the round that began last, or the round has failed here. For
  /// threads that may outlive it.
  IsInterrupted is_interrupted() const;
  /// The run is built and begins to train.
  void built();
  /// Runs `work` of this round, to which `run` belongs, while the launcher can abort its
  /// collectives. A failure is reported before it is thrown, so that the launcher learns the first
  /// one first.
  void work(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& watch,
            const std::function<void()>& work);
  /// Reports the failure of this round, unless it was reported. Returns false when this process
  /// must end: a wrong configuration fails again, and after a request to stop there is no next
  /// round.
  bool failed(const Error& error);

 private:
  class AbortListener;

  void aborted(const std::string& reason);
  void watch(FailureWatch* watch);

  ControlEnd control_;
  LaunchEnv launch_;
  std::shared_ptr<std::atomic<bool>> is_aborted_ = std::make_shared<std::atomic<bool>>(false);
  int round_ = -1;
  bool has_reported_ = false;
  bool must_end_ = false;  ///< a thread of a data set hangs and still uses the run

  std::mutex mutex_;
  FailureWatch* watch_ = nullptr;            ///< of this round, once it exists
  std::optional<std::string> reason_;        ///< why this round was aborted
  std::unique_ptr<AbortListener> listener_;  ///< from the begin of a round until the next wait()
};

}  // namespace titan::core
