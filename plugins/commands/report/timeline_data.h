// The timelines of a run in the JSON of titan report's page. Used by page_data.cpp.
#pragma once

#include <vector>

#include <titan/runs/timeline.h>
#include <titan/value.h>

namespace titan::commands {

/// Evenly spaced steps, including the first and the last, with at most `most_spans` spans together.
/// If only one step fits, it is the last one. If that is too large, only its first ranks are kept.
/// Null without timelines.
///
///   {"names": [...], "phases": [...], "schedule": "1F1B", "num_steps": 40, "num_ranks": 4,
///    "steps": [{"step": 5,
///               "ranks": [{"rank": 0, "row": 0,
///                          "spans": [[phase, name, begin, end, waited], ...]}, ...],
///               "plan": [[[phase, name, begin, end], ...] of each rank of the pipeline]}]}
///
/// Times are seconds since the first rank began the step. `phase` and `name` are indices, `row` is
/// the rank's row in `plan`. `num_steps`, `num_ranks`: of the run.
Value timeline_data(const std::vector<RankTimeline>& ranks, int64_t most_spans);

}  // namespace titan::commands
