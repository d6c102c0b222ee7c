// Runs the ranks of this node: forwards their output and signals, ends all of them after the first
// failure, and reaps every one. Used by plugin.cpp, once per start.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/signal_inbox.h>

#include "launch_plan.h"
#include "outside_signals.h"
#include "rank_output.h"
#include "screen.h"

namespace titan::launching {

/// The rank that failed first.
struct RankFailure {
  int rank = -1;
  pid_t pid = -1;
  std::string how;    ///< "ended with exit code 1"
  std::string error;  ///< its error message, all lines; empty if it gave none
  std::string seen;   ///< the error of another rank
};

/// How one start of the group ended.
struct GroupEnd {
  int exit_code = 0;         ///< of the first rank that failed; 128 + n when signal n ended it
  bool has_failed = false;   ///< false: done, or stopped by a signal that was passed on
  std::string failure;       ///< "rank 2 ended with exit code 1: error: ...", if has_failed
  RankFailure first;         ///< if has_failed
  bool was_stopped = false;  ///< by a signal from outside: no restart
};

class RankGroup {
 public:
  /// Starts every rank. When one cannot be started, kills the others and throws an io Error.
  /// `attempt` counts from 0.
  RankGroup(const LaunchPlan& plan, const Environment& environment, int attempt, Screen& screen,
            SignalInbox& signals);
  /// Kills and reaps ranks that still run.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;

  /// Returns when every rank has ended.
  GroupEnd run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    int number;
    std::unique_ptr<RankOutput> output;
    pid_t pid = -1;                ///< also its process group
    bool is_running = false;       ///< false once reaped: another process may then have the pid
    int status = 0;                ///< as waitpid gives it
    bool was_told_to_end = false;  ///< by this launcher, after another rank's failure
  };

  void start(const ChildCommand& command, Rank& rank);
  void kill_all();
  bool is_running() const;
  void wait_for_events(bool& may_have_ended);
  void pass_on(int signal);
  void reap();
  void note_end(Rank& rank);
  void meet_deadline();
  void judge();
  void report_first_failure();
  void tell_to_end(int signal);
  static void send(const Rank& rank, int signal);
  std::string what_it_said(const Rank& rank) const;
  void summarize();

  const LaunchPlan& plan_;
  Screen& screen_;
  SignalInbox& signals_;
  std::optional<HeldPort> held_port_;  ///< of the rendezvous, unless the plan gives an address
  std::vector<Rank> ranks_;
  GroupEnd end_;

  /// The next action after the first failure: report the rank that failed first, then send SIGTERM
  /// to the others, then SIGKILL.
  enum class Next { judge, terminate, kill, nothing };
  Next next_ = Next::judge;
  std::optional<Clock::time_point> deadline_;
  std::vector<Rank*> failed_;  ///< in the order of their exits, until judge()
  Rank* first_failed_ = nullptr;

  OutsideSignals outside_;
};

}  // namespace titan::launching
