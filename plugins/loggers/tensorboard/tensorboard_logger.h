// Logger `tensorboard`: writes scalars, histograms, the configuration and HParams as event files
// for TensorBoard.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/logger.h>

#include "event_file.h"

namespace titan::loggers {

/// Writes into `<dump_folder>/<save_tb_folder>/YYYYmmdd-HHMMSS` (local time of the start), in a
/// subfolder `rank_<r>` when every rank writes its own files. Scalars have their tags and are in
/// fp32. The resolved configuration is text: JSON under "config", a table for each section under
/// "config/<section>". A layout for the custom scalars dashboard is included.
///
/// Rank 0 adds a session of the HParams dashboard, in a separate event file that ends in
/// ".session": the keys that affect learning, and the outcome of the run.
///
/// A resumed run continues in the latest such folder with a new file, which starts with the first
/// repeated step. TensorBoard then drops this and later steps of earlier files, so that a curve is
/// one line. The new session replaces the earlier one.
class TensorboardLogger final : public Logger {
 public:
  explicit TensorboardLogger(LoggerContext context)
      : folder_(std::move(context.tensorboard_folder)) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void log_histograms(int64_t step, std::span<const Histogram> histograms) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  void start_session(const std::filesystem::path& folder, const RunInfo& run);

  std::string folder_;
  EventFile file_;
  std::optional<EventFile> session_;  // of the HParams dashboard
};

}  // namespace titan::loggers
