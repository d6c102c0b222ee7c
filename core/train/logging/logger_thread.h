// Runs one logger on a thread of its own: calls are queued, so that a logger that is slow, hangs or
// throws does not delay the trainer. Used by logger_set.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <titan/logger.h>

namespace titan::core {

struct LoggerLimits {
  size_t most_waiting = 1000;  ///< calls; at this queue length new ones are dropped
  double patience = 60;        ///< seconds of one call, after which one warning reports a hang
  double finish_wait =
      0;  ///< seconds after the end of the run; 0: the limit that the logger asks for
};

/// All functions: trainer thread; only `flush` and `wait_for_end` wait for the logger. If a logger
/// fails, hangs or is too slow, one warning reports it at once, and one at the end reports how many
/// calls it missed.
class LoggerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Call = std::function<void(Logger&)>;

  LoggerThread(std::string name, std::shared_ptr<Logger> logger, const LoggerLimits& limits);
  ~LoggerThread();  ///< after `wait_for_end`
  LoggerThread(const LoggerThread&) = delete;

  /// Queues a call after those that are already queued.
  void add(Call call);
  /// If several wait in the queue, the logger gets only the latest.
  void step_done(const StepProgress& progress);
  /// Waits until the queue is empty, without a time limit.
  void flush();
  /// Lets the thread look at its queue now.
  void wake();
  /// As flush, until `deadline` at most. After a deadline that it missed, a logger is not waited
  /// for again until its queue has been empty.
  void flush_until(Clock::time_point deadline);

  /// Queues finish() as the last call.
  void finish(RunOutcome outcome);
  /// [after `finish`; `asked`: the time at which all loggers were asked to] A logger that has not
  /// finished within the limit is abandoned: its thread no longer uses any object of the run, and
  /// the process may end while it works.
  void wait_for_end(Clock::time_point asked);

 private:
  struct State;  // shared with the thread, which may outlive the run
  static void work(State& state);
  static void fail(State& state, const std::string& problem);
  void tell_what_is_lost(State& state) const;

  LoggerLimits limits_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace titan::core
