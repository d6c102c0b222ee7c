// The training loop. Everything it turns was assembled before (assembly.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <titan/value.h>

#include "core/train/assembly.h"
#include "core/train/metrics.h"

namespace titan::core {

/// What a run has reached; stored in checkpoints together with the weights, the optimizer and the
/// data position.
struct TrainState {
  int64_t step = 0;
  int64_t tokens_seen = 0;
};

enum class StopReason { all_steps_done, interrupted, terminated };

/// Thread: construct and run on one thread.
class Trainer {
 public:
  /// `run` and `watch` outlive the trainer.
  Trainer(Run& run, const JobConfig& config, FailureWatch& watch);

  /// Trains until the last step or until SIGINT or SIGTERM asks to stop after the current one.
  /// Loggers are closed on every way out. Errors carry the step as context.
  StopReason run();

  const TrainState& state() const { return state_; }

 private:
  bool should_stop();
  void train_step();
  void shorten_timeouts();
  void require_finite(const StepLoss& loss, const GradientNorm& norm) const;

  Run& run_;
  int64_t steps_;
  double max_norm_;
  std::chrono::seconds train_timeout_;
  FailureWatch& watch_;
  int stop_signal_ = 0;  ///< that some rank has got
  TrainState state_;
  Metrics metrics_;
};

}  // namespace titan::core
