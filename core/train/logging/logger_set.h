// All loggers of a run, each on a thread of its own. One that fails, hangs or is too slow is
// reported once; training continues.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/watcher.h>

#include "core/train/logging/logger_thread.h"

namespace titan::core {

/// Thread: trainer thread. Only `flush`, `flush_within` and `finish` wait for a logger.
class LoggerSet final : public WatcherLog {
 public:
  explicit LoggerSet(const LoggerLimits& limits = {}) : limits_(limits) {}
  /// Finishes as failed, unless `finish` was called.
  ~LoggerSet() override;
  LoggerSet(const LoggerSet&) = delete;

  /// The logger is shared with callers that pass it tensors, and with its thread.
  void add(std::string name, std::shared_ptr<Logger> logger);

  void start(const RunInfo& run);
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void log_histograms(int64_t step, std::span<const Histogram> histograms) override;
  /// [after every step] Free of cost unless a logger follows steps.
  void step_done(const StepProgress& progress);
  /// Waits until every logger has processed its queue.
  void flush();
  /// The same for at most `limit` together, as LoggerThread::flush_until.
  void flush_within(LoggerThread::Clock::duration limit);
  /// Every logger processes its queue and closes. Loggers that do not finish within the limit are
  /// abandoned.
  void finish(RunOutcome outcome) noexcept;

 private:
  LoggerLimits limits_;
  std::vector<std::unique_ptr<LoggerThread>> loggers_;
  std::vector<LoggerThread*> followers_;  // of steps
};

}  // namespace titan::core
