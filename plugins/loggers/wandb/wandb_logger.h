// Logger `wandb`: writes the run in the file format of Weights & Biases, whose programs upload it.
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
/// configuration, one history row per logged step, the last values and the outcome. `wandb sync`
/// uploads the folder afterwards, `wandb beta sync --live` during the run; the run itself opens no
/// connection.
///
/// A row is written when the next step is logged, because it contains all values logged for its
/// step: scalars, validation, histograms. The last values are written at most every ten seconds.
///
/// A resumed run has a new folder with the same id. A history has one row per step: repeated steps
/// keep their first row, as with wandb itself.
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

  int64_t step_ = 0;  // step of row_
  std::vector<WandbItem> row_;
  double row_time_ = 0;
  std::map<std::string, std::string> summary_;  // values changed since the last summary record
  std::chrono::steady_clock::time_point summary_due_;
};

}  // namespace titan::loggers
