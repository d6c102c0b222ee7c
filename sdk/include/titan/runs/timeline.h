// What the ranks of a run did when within single steps (timeline/rank_<r>.jsonl), and when their
// pipeline's schedule would have done it without a wait. Used by titan report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/export.h>

namespace titan {

struct TimelineSpan {
  std::string phase, name;
  double begin = 0, end = 0;  ///< seconds since the step of its rank began
  double waited = 0;          ///< of it, for others
};

/// What a rank sent by one operation of one group.
struct StepTraffic {
  std::string group, operation;
  int64_t calls = 0, bytes = 0;
};

/// One step of one rank.
struct TimelineStep {
  int64_t step = 0;
  double begin = 0;  ///< seconds since 1970
  std::vector<TimelineSpan> spans;
  std::vector<StepTraffic> traffic;
};

/// What a rank of a pipeline was told to do.
struct TimelinePlan {
  std::string schedule;
  int rank = 0;  ///< within the pipeline
  int num_ranks = 0, num_stages = 0, num_microbatches = 0;
  std::vector<std::string> actions;  ///< "0F0"
};

struct RankTimeline {
  int64_t rank = 0;
  TimelinePlan plan;                ///< of the last session; no actions without a pipeline
  std::vector<TimelineStep> steps;  ///< rising; of a step that was done again the last time
  int64_t num_unreadable = 0;       ///< lines
};

/// Of all ranks, in their order; empty when the run has written none.
TITAN_API std::vector<RankTimeline> read_timelines(const std::filesystem::path& run_folder);
/// The lines of one file.
TITAN_API RankTimeline parse_timeline(std::string_view text, int64_t rank);

/// When a rank of the pipeline would do something, in seconds.
struct PlannedAction {
  std::string name;
  std::string phase;  ///< forward or backward
  double begin = 0, end = 0;
};

/// By rank of the pipeline: each action as soon as its rank is free and what it needs is there,
/// taking as long as actions of its kind took on average in `step`, waiting excluded. Rounds of
/// accumulated gradients stand one after the other. Empty without
/// a pipeline, where a rank's plan is missing or none can be followed, and where a kind was not
/// measured.
TITAN_API std::vector<std::vector<PlannedAction>> planned_timeline(
    const std::vector<RankTimeline>& ranks, int64_t step);

}  // namespace titan
