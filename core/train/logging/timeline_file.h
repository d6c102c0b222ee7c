// The timed actions of a rank in a few steps of a run: timeline/rank_<r>.jsonl. titan report draws
// them next to the plan of a pipeline's schedule.
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

/// The schedule's plan for one rank of a pipeline.
struct PlannedPipeline {
  const PipelinePlan* plan = nullptr;  ///< null without a pipeline
  std::string schedule;
  int rank = 0;
};

/// Keeps the spans and the traffic of every logged step up to the 10th, then of every 10th up to
/// the 100th, and so on, so that a long run does not fill the disk. The first line that cannot be
/// written is logged as a warning and ends the record. Thread: trainer thread.
class TimelineFile {
 public:
  /// By group and operation, as dist::Recorder counts it.
  using TrafficByKind = std::map<std::pair<std::string, std::string>, dist::Traffic>;

  /// Appends to `path` if `goes_on`, else truncates it.
  TimelineFile(const std::filesystem::path& path, bool goes_on, dist::Recorder& recorder,
               const PlannedPipeline& planned);

  /// Only logged steps can be kept.
  void begin_step(int64_t step, bool is_logged);
  void end_step();

 private:
  void write(const Value& line);

  dist::Recorder& recorder_;
  std::optional<GrowingFile> file_;
  int64_t num_logged_ = 0;
  int64_t step_ = 0;       // 0: this step is not kept
  double begin_ = 0;       // monotonic
  TrafficByKind traffic_;  // before its begin
};

}  // namespace titan::core
