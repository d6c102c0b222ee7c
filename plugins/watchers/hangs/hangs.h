// Ends a run of which a rank hangs, by limits that are learned from its steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <titan/watcher.h>
#include <titan/watcher_state.h>

#include "find_hang.h"
#include "limits.h"

namespace titan::hangs {

/// A thread of each rank compares the time in the current section with its limit. Time counts from
/// the end of the step before to the end of the step. Time under a debugger or a profiler, and time
/// in which the process was stopped, counts neither for limits nor for what is learned.
class Hangs final : public Watcher, public StepMember, public WatcherState {
 public:
  Hangs(const Options& options, WatcherContext context);
  ~Hangs() override { stop(); }

  std::vector<StepMember*> members() override { return {this}; }
  bool looks_into_layers() const override { return false; }
  bool reads_numbers() const override { return false; }
  bool undoes_steps() const override { return false; }

  void before_step(int64_t step) override;
  void begin(Step& step) override;
  void commit(const Step&) override { settle(); }
  void skip(const Step&) override { settle(); }
  void after_step(int64_t step) override;
  void failed(int64_t) noexcept override { stop(); }
  void finish(int64_t) noexcept override { stop(); }

  Value state() const override;
  void restore(const Value& state) override;

 private:
  void settle();
  void stop() noexcept;
  void run();
  /// The rest is called with mutex_ held.
  void begin_time();
  Seconds times() const;
  Situation situation(double now, const std::optional<double>& awaited) const;
  bool is_first_step() const { return num_done_ < options_.first_steps; }
  void look(double now, double passed, std::unique_lock<std::mutex>& lock);
  /// Empty: it is no hang after all.
  std::string error_of(const Finding& finding, int64_t step, StepPhase phase) const;
  std::string limit_text(const Limit& limit) const;

  const Options options_;
  const WatcherContext context_;
  const StepClock& clock_;
  const bool host_waits_;  ///< for other ranks, in collectives; otherwise for a device, anywhere
  const std::string host_;
  mutable std::atomic<int64_t> num_saves_ = 0;  ///< of the run; counted on rank 0 between updates

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_closing_ = false;
  bool is_profiled_ = false;
  int64_t step_ = 0;
  int64_t num_done_ = 0;        ///< steps of this start
  StepClock::Seconds begin_{};  ///< of the clock, when the time of this step began
  double excused_ = 0;          ///< seconds of this step that do not count
  Seconds before_{};            ///< of the step before
  Longest longest_;             ///< of this rank since the start
  Limits limits_;
  std::thread thread_;
};

}  // namespace titan::hangs
