// Logger `jsonl`: every scalar of every logged step, in full precision, as one JSON object a line.
#pragma once

#include <filesystem>

#include <titan/logger.h>

#include "../common/output_file.h"

namespace titan::loggers {

/// Writes `<dump_folder>/metrics.jsonl`, or `metrics_rank_<r>.jsonl` when every rank writes its
/// own:
///
///   {"step":10,"wall_time":1767225600.25,"loss_metrics/global_avg_loss":7.3654,"grad_norm":"nan"}
///
/// Numbers are the shortest that read back equal; what JSON has no number for is "nan", "inf" or
/// "-inf". Steps never fall from line to line. A fresh run starts the file anew; a resumed one
/// drops the steps that will be done again, and a line that a kill cut short, and continues it.
class JsonlLogger final : public Logger {
 public:
  explicit JsonlLogger(LoggerContext) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  OutputFile output_;
};

/// Cuts the file behind its last whole line of a step <= `last_step`. Throws an Error naming file
/// and line for a line that is no metrics line, and leaves the file as it was.
void drop_later_steps(const std::filesystem::path& path, int64_t last_step);

}  // namespace titan::loggers
