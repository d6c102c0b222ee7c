// The timelines of a run as the page of titan report is given them. Used by page_data.cpp.
#pragma once

#include <vector>

#include <titan/runs/timeline.h>
#include <titan/value.h>

namespace titan::commands {

/// Steps from the first to the last one, evenly, so that there are at most `most_spans` spans; one
/// step at least, and of that the first ranks when it is too large. Null without timelines.
///
///   {"names": [...], "phases": [...], "schedule": "1F1B", "num_steps": 40, "num_ranks": 4,
///    "steps": [{"step": 5,
///               "ranks": [{"rank": 0, "row": 0, "spans": [[phase, name, begin, end, waited],
///               ...]}], "plan": [[[phase, name, begin, end], ...] of each rank of the pipeline]}]}
///
/// Seconds since the first rank began the step; phase and name are indices, `row` is the rank's
/// place in the plan. `num_steps` and
/// `num_ranks`: those that the run has.
Value timeline_data(const std::vector<RankTimeline>& ranks, int64_t most_spans);

}  // namespace titan::commands
