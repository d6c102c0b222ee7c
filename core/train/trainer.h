// The training loop. The assembly (assembly.h) makes the objects that it uses before it starts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <titan/step.h>
#include <titan/value.h>

#include "core/runtime/groups/failure_watch.h"
#include "core/train/assembly/run.h"
#include "core/train/journal.h"
#include "core/train/logging/epoch_counter.h"
#include "core/train/metrics.h"
#include "core/train/step_members.h"

namespace titan::core {

enum class StopReason {
  all_steps_done,
  stopped,          ///< by a signal; nothing was saved
  saved,            ///< by a signal, after a checkpoint
  saved_by_others,  ///< by a signal; another replica group saves the checkpoints of the run
};

/// The data of a step, and scalars to log with it.
struct SourcedStep {
  StepBatches batches;
  std::vector<Scalar> scalars = {};
};
/// [trainer thread, before each step] The job's data, or a custom loop.
using StepSource = std::function<SourcedStep(int64_t number)>;

/// Thread: construct and run on one thread.
class Trainer {
 public:
  /// `run` and `watch` outlive the trainer. `begin`: when the program started, seconds since 1970.
  Trainer(Run& run, const JobConfig& config, FailureWatch& watch, double begin, StepSource source);

  /// Trains until the last step, or until a signal asks to stop after the current one; saves
  /// checkpoints on the way. Loggers are closed however the run ends. Errors carry the step as
  /// context.
  StopReason run();

  const TrainState& state() const { return run_.state; }
  /// The signal that ended the run, or 0.
  int stop_signal() const { return stop_signal_; }

 private:
  bool has_next_step();
  bool should_stop();
  StopReason stop();
  void take_step();
  void end_journal(RunOutcome outcome, const std::string& error);
  void end_failed(const std::string& error);
  bool train_step();
  void count_epochs(Step& step);
  Step next_step();
  void validate();
  void save();
  void shorten_timeouts();
  void wait_for_checkpoint();

  Run& run_;
  int64_t steps_;
  std::chrono::seconds train_timeout_;
  FailureWatch& watch_;
  int64_t step_;          ///< the last one that began
  int stop_signal_ = 0;   ///< that some rank has received
  bool is_warm_ = false;  ///< a step was done
  Journal journal_;
  EpochCounter epochs_;
  Metrics metrics_;
  StepMembers members_;
  StepRunner runner_;
  StepSource source_;
  std::vector<Scalar> source_scalars_;  // of the current step
};

}  // namespace titan::core
