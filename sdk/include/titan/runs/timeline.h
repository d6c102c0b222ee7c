// The activities of ranks within single steps (timeline/rank_<r>.jsonl), and the pipeline
// schedule's ideal times without waiting. Used by titan report.
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
  double waited = 0;          ///< part of it waiting for other ranks
};

/// The traffic of a rank by one operation in one group.
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

/// The actions of one rank of a pipeline.
struct TimelinePlan {
  std::string schedule;
  int rank = 0;  ///< within the pipeline
  int num_ranks = 0, num_stages = 0, num_microbatches = 0;
  std::vector<std::string> actions;  ///< "0F0"
};

struct RankTimeline {
  int64_t rank = 0;
  TimelinePlan plan;                ///< of the last session; no actions without a pipeline
  std::vector<TimelineStep> steps;  ///< ascending; the last run of a repeated step
  int64_t num_unreadable = 0;       ///< malformed lines
};

/// Of all ranks, in order; empty if the run wrote none.
TITAN_API std::vector<RankTimeline> read_timelines(const std::filesystem::path& run_folder);
/// The lines of one file.
TITAN_API RankTimeline parse_timeline(std::string_view text, int64_t rank);

/// The planned time of an action of a pipeline rank, in seconds.
struct PlannedAction {
  std::string name;
  std::string phase;  ///< forward or backward
  double begin = 0, end = 0;
};

/// By rank of the pipeline: each action starts as soon as its rank is free and its inputs are
/// available. It takes the mean time of actions of its kind in `step`, without waiting. Rounds of
/// gradient accumulation follow one another. Empty without a pipeline, if a rank's plan is missing
/// or cannot be followed, and if a kind was not measured.
TITAN_API std::vector<std::vector<PlannedAction>> planned_timeline(
    const std::vector<RankTimeline>& ranks, int64_t step);

}  // namespace titan
