// The runs of a sweep: their commands, their resolved configurations, and what their folders
// record. A run's folder is named by a hash of its configuration, so no run meets the files of
// another. Used by titan sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/program/signal_inbox.h>

#include "sweep_file.h"

namespace titan::commands {

struct SweepRun {
  enum class State {
    fresh,     ///< nothing is recorded
    partial,   ///< stopped, killed, or still running elsewhere
    failed,    ///< ended with an error
    finished,  ///< all steps are done
  };

  size_t case_index = 0;
  int64_t seed = 0;
  std::string label;               ///< "optimizer.lr = 0.01, seed 1"
  std::vector<std::string> flags;  ///< of titan train, without the folder
  std::string hash;                ///< of the resolved configuration without job.dump_folder
  std::filesystem::path folder;    ///< job.dump_folder
  std::filesystem::path log;
  State state = State::fresh;
  int64_t last_step = 0;  ///< that the history records
};

/// "finished"
const char* to_string(SweepRun::State state);

/// Resolves every run with `program` train --dry-run and looks up what its folder records. All runs
/// are checked before this returns. Throws a config Error with all reports, or if two cases resolve
/// to the same configuration; an io Error if a signal stopped the checks.
std::vector<SweepRun> plan_runs(const SweepFile& sweep, const std::filesystem::path& program,
                                SignalInbox& signals);

/// Reads the state and the last step from the run's folder.
void look_up(SweepRun& run);

/// The arguments of titan that start or resume `run`, as `ranks` ranks of this machine.
std::vector<std::string> words_of(const SweepRun& run, int64_t ranks);

/// The number that `metric` takes from metrics.jsonl of a finished run; may be NaN or infinite.
/// Throws a config Error if nothing has the tag.
double score_of(const SweepRun& run, const SweepMetric& metric);

}  // namespace titan::commands
