// The ranks of this node from start to end: their output forwarded, signals passed on, all of them
// ended after the first failure, every one reaped. Used by commands/launch.cpp, once per start.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/signal_inbox.h>

#include "launch_plan.h"
#include "rank_output.h"
#include "screen.h"

namespace titan::launching {

/// How one start of the group ended.
struct GroupEnd {
  int exit_code = 0;         ///< of the first rank that failed; 128 + n when signal n ended it
  bool has_failed = false;   ///< false: done, or stopped by a signal that was passed on
  std::string failure;       ///< "rank 2 ended with exit code 1: error: ...", when it has failed
  bool was_stopped = false;  ///< somebody asked for the end: there is no restart
};

class RankGroup {
 public:
  /// Starts every rank. Throws an io Error, with none left behind, when one cannot be started.
  /// `attempt` counts from 0.
  RankGroup(const LaunchPlan& plan, const Environment& environment, int attempt, Screen& screen,
            SignalInbox& signals);
  /// Kills and reaps what still runs.
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
    bool is_running = false;       ///< false once reaped: the pid may be another's then
    int status = 0;                ///< as waitpid gives it
    bool was_told_to_end = false;  ///< by this launcher, after another's failure
  };

  void start(const ChildCommand& command, Rank& rank);
  void kill_all();
  bool is_running() const;
  void wait_for_events(bool& may_have_ended);
  void pass_on(int signal);
  void reap();
  void note_end(Rank& rank);
  bool is_requested_stop(int status) const;
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
  std::optional<HeldPort> held_port_;  ///< where the ranks meet, unless the plan names a place
  std::vector<Rank> ranks_;
  GroupEnd end_;

  /// What happens from the first failure on, and when: who failed first is said, the others get
  /// SIGTERM, then SIGKILL.
  enum class Next { judge, terminate, kill, nothing };
  Next next_ = Next::judge;
  std::optional<Clock::time_point> deadline_;
  std::vector<Rank*> failed_;  ///< in the order in which they ended, until the verdict
  Rank* first_failed_ = nullptr;

  std::vector<int> passed_on_;    ///< signals from outside, each once
  std::optional<int> killed_by_;  ///< the second signal from outside that asked for the end
};

}  // namespace titan::launching
