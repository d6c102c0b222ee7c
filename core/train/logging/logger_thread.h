// One logger on a thread of its own: what a run says is queued for it, so that a logger that is
// slow, hangs or throws costs the trainer nothing. Used by logger_set.cpp.
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
  size_t most_waiting = 1000;  ///< calls; while so many wait, new ones are dropped
  double patience = 60;        ///< seconds of one call, after which it is said once that it hangs
  double finish_wait = 0;      ///< seconds from the end of the run on; 0: what the logger asks for
};

/// All functions: trainer thread, and none waits for the logger but `flush` and `wait_for_end`. Of
/// a logger that fails, hangs or is too slow one warning tells when it is noticed, and at the end
/// how much it missed.
class LoggerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Call = std::function<void(Logger&)>;

  LoggerThread(std::string name, std::shared_ptr<Logger> logger, const LoggerLimits& limits);
  ~LoggerThread();  ///< after `wait_for_end`
  LoggerThread(const LoggerThread&) = delete;

  /// Queues a call; those that were queued before come first.
  void add(Call call);
  /// Of several that wait only the latest is told.
  void step_done(const StepProgress& progress);
  /// Waits until nothing is left to do, however long that takes.
  void flush();

  /// Queues finish() as the last call.
  void finish(RunOutcome outcome);
  /// [after `finish`, which all were asked for at `asked`] A logger that has not come to its end
  /// within the limit is left where it is: its thread touches nothing of the run any more, and the
  /// process may end under it.
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
