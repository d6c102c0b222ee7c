// Runs the ranks of `titan launch --in-process`. After a failure the processes that are left build
// the run anew; a spare process or a new one takes the place of each that is lost. Used by
// plugin.cpp.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/signal_inbox.h>

#include "launch_plan.h"
#include "outside_signals.h"
#include "rank_group.h"
#include "rank_output.h"
#include "rank_process.h"
#include "screen.h"

namespace titan::launching {

class InProcessGroup {
 public:
  InProcessGroup(const LaunchPlan& plan, const Environment& environment, Screen& screen,
                 SignalInbox& signals);
  /// Kills and reaps processes that still run.
  ~InProcessGroup();
  InProcessGroup(const InProcessGroup&) = delete;

  /// Begins round `round`, counted from 0, in every rank, and returns when all ranks have ended, or
  /// when after a failure all that are left wait for the next round. Throws an io Error when a
  /// process cannot be started.
  GroupEnd run(int round);
  /// Ends the processes that wait. Returns when every process has ended.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  struct Seat {
    int number;  ///< of the rank, or of the spare
    bool is_spare = false;
    std::unique_ptr<RankOutput> output;
    RankProcess process = {};

    std::string name() const { return (is_spare ? "spare " : "rank ") + std::to_string(number); }
    std::string name_and_pid() const;
  };

  void begin();
  void fill(Seat& seat);
  void start(Seat& seat);
  void start_missing_spares();
  std::vector<Seat*> all();
  bool has_failure() const { return first_failed_ || !failed_.empty(); }
  bool is_over() const;
  void wait_for_events();
  void receive(Seat& seat);
  void pass_on(int signal);
  bool must_end() const;
  void reap();
  void note_end(Seat& seat);
  void note_end_of_spare(const Seat& spare);
  void note_failure(Seat& seat);
  void meet_deadline();
  void judge();
  void summarize();
  GroupEnd conclude();

  const LaunchPlan& plan_;
  const Environment& environment_;
  Screen& screen_;
  SignalInbox& signals_;
  std::optional<HeldPort> held_port_;  ///< of this round's rendezvous
  std::vector<Seat> ranks_, spares_;
  int next_spare_ = 0;
  int lost_spares_ = 0;  ///< in a row that ended before they were ready
  int round_ = -1;
  GroupEnd end_;

  /// What follows the first failure: report the rank that failed first, then SIGKILL to the ranks
  /// that do not leave the round.
  enum class Next { judge, kill, nothing };
  Next next_ = Next::judge;
  std::optional<Clock::time_point> deadline_;
  std::vector<Seat*>
      failed_;  ///< in the order in which this launcher learned of them, until judge()
  Seat* first_failed_ = nullptr;

  OutsideSignals outside_;
};

}  // namespace titan::launching
