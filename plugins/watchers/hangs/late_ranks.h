// Which ranks a rank waits for, from the status files of all ranks (titan/runs/rank_status.h).
// Used by Hangs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/runs/rank_status.h>

namespace titan::hangs {

/// The collective that this rank waits for: started, and its end awaited. Any thread.
std::optional<dist::CommRecord> awaited_collective(const dist::Recorder& recorder);

struct LateRanks {
  std::string names;               ///< "rank 1 (host b)", "ranks 1, 2 and 5 more"; empty: not known
  std::vector<std::string> lines;  ///< what each does; of at most kMostLines ranks
  static constexpr size_t kMostLines = 8;
};

/// The ranks of the collective's group that did not arrive in it, by what their status files say.
/// Without a collective: the ranks whose files are no longer written. `now`: seconds since 1970.
LateRanks late_ranks(const dist::Mesh& mesh, const std::optional<dist::CommRecord>& awaited,
                     const RankStatuses& statuses, double now);

/// The names of the ranks other than `own` that are in `phase`; empty: none. A save ends when all
/// ranks have written, and which of them holds the others is not known.
std::string ranks_in_phase(const RankStatuses& statuses, StepPhase phase, int own);

}  // namespace titan::hangs
