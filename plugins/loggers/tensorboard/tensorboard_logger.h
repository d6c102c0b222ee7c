// Logger `tensorboard`: scalars and the configuration as an event file that TensorBoard reads.
#pragma once

#include <filesystem>
#include <string>

#include <titan/logger.h>

#include "event_file.h"

namespace titan::loggers {

/// Writes into `<dump_folder>/<save_tb_folder>/YYYYmmdd-HHMM` (local time of the start), and there
/// into `rank_<r>` when every rank writes its own. Scalars stand under their tags in fp32, the
/// resolved configuration as text under "config".
///
/// A resumed run continues in the latest such folder, with a file of its own that starts by telling
/// the first step done again: TensorBoard drops what the earlier files hold from there on, so that
/// a curve is one line.
class TensorboardLogger final : public Logger {
 public:
  explicit TensorboardLogger(LoggerContext context)
      : folder_(std::move(context.tensorboard_folder)) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  std::string folder_;
  EventFile file_;
};

}  // namespace titan::loggers
