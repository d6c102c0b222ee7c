// A run's own records, in addition to its loggers: history.jsonl (rank 0), status/ and timeline/
// (each rank), all under job.dump_folder. Used by the trainer; titan report and titan top read the
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/runs/history_writer.h>
#include <titan/step.h>
#include <titan/step_phase.h>

#include "core/config/schema/job_config.h"
#include "core/train/logging/status_file.h"
#include "core/train/logging/timeline_file.h"

namespace titan::core {

struct Run;

/// The measurements between two logged steps.
struct LoggedInterval {
  int64_t from = 0, to = 0;  ///< steps
  StepClock::Seconds seconds{};
  double tokens_per_second = 0;  ///< of the job
  double loss = 0;
  int64_t memory_bytes = 0, memory_total = 0;
};

/// "forward": 0.25 for each phase.
Value as_value(const StepClock::Seconds& seconds);

/// A failure in the journal does not end a run. Thread: trainer thread.
class Journal {
 public:
  /// Writes nothing.
  Journal() = default;
  /// `begin`: when the program started, seconds since 1970. `run` outlives this.
  Journal(const Run& run, const JobConfig& config, double begin);

  void begin_step(int64_t step, bool is_logged);
  void end_step(int64_t step);
  void logged(const LoggedInterval& interval);
  /// Steps before the end of the run that were not logged.
  void ended_unlogged(int64_t from, int64_t to, const StepClock::Seconds& seconds);
  /// An attempt of a step was skipped or is repeated.
  void undone(const Step& step, const Judgement& judgement);
  void validated(int64_t step, double seconds);
  void saved(int64_t step, double held_seconds);
  void end(int64_t step, RunOutcome outcome, const std::string& error);

  /// In [0, 1]; unset on ranks without a history.
  std::optional<double> goodput() const;

 private:
  std::optional<HistoryWriter> history_;
  std::optional<StatusFile> status_;
  std::optional<TimelineFile> timeline_;
  StatusNumbers numbers_;
  double step_began_ = 0;
  bool is_first_ = true;
};

}  // namespace titan::core
