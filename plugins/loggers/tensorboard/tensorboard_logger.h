// Logger `tensorboard`: scalars, histograms, the configuration and HParams as event files that
// TensorBoard reads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/logger.h>

#include "event_file.h"

namespace titan::loggers {

/// Writes into `<dump_folder>/<save_tb_folder>/YYYYmmdd-HHMMSS` (local time of the start), and
/// there into `rank_<r>` when every rank writes its own. Scalars stand under their tags in fp32,
/// the resolved configuration as text: JSON under "config", a table for each section under
/// "config/<section>". A layout for the custom scalars dashboard comes with them.
///
/// Rank 0 adds a session of the HParams dashboard, in an event file of its own that ends in
/// ".session": what of the configuration changes how a run learns, and how the run ended.
///
/// A resumed run continues in the latest such folder, with a file of its own that starts by telling
/// the first step done again: TensorBoard drops what the earlier files hold from there on, so that
/// a curve is one line. Its session takes the place of the earlier one.
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
