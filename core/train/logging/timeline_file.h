// What a rank has done when, in a few steps of a run: timeline/rank_<r>.jsonl. Read by titan
// report, which draws it beside what a pipeline's schedule has planned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <titan/dist/recorder.h>
#include <titan/files/growing_file.h>
#include <titan/pipeline_schedule.h>
#include <titan/value.h>

namespace titan::core {

/// What a pipeline's schedule has planned for a rank of it.
struct PlannedPipeline {
  const PipelinePlan* plan = nullptr;  ///< none without a pipeline
  std::string schedule;
  int rank = 0;
};

/// Keeps the spans and the traffic of every logged step up to the 10th, then of every 10th up to
/// the 100th, and so on: a long run fills no disk. A line that cannot be written is warned of once
/// and ends the record. Thread: trainer thread.
class TimelineFile {
 public:
  /// By group and operation, as dist::Recorder counts it.
  using TrafficByKind = std::map<std::pair<std::string, std::string>, dist::Traffic>;

  /// Goes on in `path` or begins it anew.
  TimelineFile(const std::filesystem::path& path, bool goes_on, dist::Recorder& recorder,
               const PlannedPipeline& planned);

  /// `is_logged`: of the steps that are, this one may be kept.
  void begin_step(int64_t step, bool is_logged);
  void end_step();

 private:
  void write(const Value& line);

  dist::Recorder& recorder_;
  std::optional<GrowingFile> file_;
  int64_t num_logged_ = 0;
  int64_t step_ = 0;       // 0: this one is not kept
  double begin_ = 0;       // monotonic
  TrafficByKind traffic_;  // up to its begin
};

}  // namespace titan::core
