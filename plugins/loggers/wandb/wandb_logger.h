// Logger `wandb`: the run as files of Weights & Biases, which its own programs upload.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <titan/logger.h>

#include "../common/remembered_run.h"
#include "wandb_file.h"
#include "wandb_options.h"
#include "wandb_records.h"

namespace titan::loggers {

/// Writes `<folder>/wandb/offline-run-<YYYYmmdd_HHMMSS>-<id>/run-<id>.wandb`: the resolved
/// configuration, one row of the history for each logged step, the last values and how the run
/// ended. `wandb sync` uploads the folder afterwards, `wandb beta sync --live` meanwhile; the run
/// itself opens no connection.
///
/// A row is written when the next step is logged, for it takes all that is logged of its step:
/// scalars, validation, histograms. The last values are written every ten seconds at most.
///
/// A resumed run has a new folder under the same id. Rows stand once in a history: the steps that
/// were logged before and are done again keep their first row, as with wandb itself.
class WandbLogger final : public Logger {
 public:
  WandbLogger(const WandbOptions& options, LoggerContext) : options_(options) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void log_histograms(int64_t step, std::span<const Histogram> histograms) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  void choose_id(WandbSettings& settings, const RunInfo& run);
  std::filesystem::path make_folder(const WandbSettings& settings, const RunInfo& run) const;
  bool takes_row(int64_t step);
  void write(const std::string& record);
  void write_row();
  void write_summary();

  WandbOptions options_;
  WandbFile file_;
  bool is_open_ = false;
  int64_t num_records_ = 0;
  double start_time_ = 0;  // seconds since 1970

  std::filesystem::path remembered_file_;
  RememberedRun run_;

  int64_t step_ = 0;  // of row_
  std::vector<WandbItem> row_;
  double row_time_ = 0;
  std::map<std::string, std::string> summary_;  // what has changed since the last one was written
  std::chrono::steady_clock::time_point summary_due_;
};

}  // namespace titan::loggers
