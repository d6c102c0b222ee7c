// One process of `titan launch --in-process`: of a rank, or a spare. Used by in_process_group.cpp.
#pragma once

#include <signal.h>

#include <filesystem>
#include <optional>
#include <string>

#include <titan/program/rank_control.h>

#include "launch_plan.h"
#include "rank_output.h"

namespace titan::launching {

struct RankProcess {
  pid_t pid = -1;           ///< also its process group
  bool is_running = false;  ///< false once reaped: another process may then have the pid
  int status = 0;           ///< as waitpid gives it
  ControlEnd control;
  std::filesystem::path error_file;

  // in the round that began last
  bool is_training = false;               ///< it has built its run
  bool is_ready = false;                  ///< it has left the round, or a spare waits for its first
  std::optional<std::string> error = {};  ///< that it reported
  bool was_killed = false;                ///< by this launcher

  /// Neither in a round nor about to enter one.
  bool is_out() const { return !is_running || is_ready; }
  void send(int signal) const;
  /// What it said of its end: reported, in its error file, or the last words of its output.
  std::string what_it_said(const RankOutput& output) const;
  /// "failed", "ended with exit code 1"
  std::string how_it_failed() const;
  int exit_code() const;
};

/// Starts a process that waits for its first round. Throws an io Error; no process is left then.
RankProcess start_process(const LaunchPlan& plan, const Environment& environment, int local_rank,
                          const HostPort& master, int round, std::filesystem::path error_file,
                          RankOutput& output, const sigset_t& mask);

}  // namespace titan::launching
