// Logger `jsonl`: all scalars of each logged step in full precision, one JSON object per line.
#pragma once

#include <filesystem>

#include <titan/logger.h>

#include "../common/output_file.h"

namespace titan::loggers {

/// Writes `<dump_folder>/metrics.jsonl`, or `metrics_rank_<r>.jsonl` when every rank writes its own
/// file:
///
///   {"step":10,"wall_time":1767225600.25,"loss_metrics/global_avg_loss":7.3654,"grad_norm":"nan"}
///
/// Numbers are the shortest text that reads back as the same value; non-finite values are the
/// strings "nan", "inf" and "-inf". Steps never decrease from line to line. A fresh run truncates
/// the file. A resumed run drops the steps that it repeats and an incomplete last line, then
/// appends.
class JsonlLogger final : public Logger {
 public:
  explicit JsonlLogger(LoggerContext) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  OutputFile output_;
};

/// Truncates the file after its last complete line of a step <= `last_step`. Throws an Error naming
/// file and line for an invalid line, and leaves the file unchanged.
void drop_later_steps(const std::filesystem::path& path, int64_t last_step);

}  // namespace titan::loggers
