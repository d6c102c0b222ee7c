// See wandb_logger.h.
#include "wandb_logger.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <system_error>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/host.h>
#include <titan/value.h>

#include "../common/run_files.h"

namespace titan::loggers {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBetweenSummaries(10);
constexpr int kIdLength = 8;

std::string wandb_time(double seconds_since_1970) {
  const auto seconds = static_cast<std::time_t>(seconds_since_1970);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d_%H%M%S", &local);
  return text.data();
}

void make_folders(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  TITAN_CHECK(!reason, io, "cannot create '", folder.string(), "': ", reason.message());
}

std::string wandb_histogram(const Histogram& histogram) {
  Value::List bins, values;
  for (const double edge : histogram.edges) bins.emplace_back(edge);
  for (const double count : histogram.counts) values.emplace_back(count);
  return to_json(Value::map({{"_type", "histogram"}, {"bins", bins}, {"values", values}}));
}

/// When every rank writes its own run, puts the runs in one group with the rank in their names.
void tell_ranks_apart(WandbSettings& settings, const RunInfo& run) {
  if (!has_files_per_rank(run)) return;
  const std::string rank = "rank_" + std::to_string(run.rank);
  if (!settings.run_id.empty()) settings.run_id += "-" + rank;
  if (settings.name.empty())
    settings.name = rank;
  else
    settings.name += " " + rank;
}

void say_how_to_upload(const fs::path& folder, const WandbSettings& settings) {
  const std::string meanwhile =
      settings.wants_upload ? ", or during the run by: wandb beta sync --live " + folder.string()
                            : "";
  log::info("wandb: the run is written to '" + folder.string() +
            "' and not uploaded; upload it by: wandb sync " + folder.string() + meanwhile);
  for (const std::string& variable : settings.without_effect)
    log::warn(variable + " has no effect, because the run is written to files for a later upload");
}

}  // namespace

void WandbLogger::start(const RunInfo& run) {
  WandbSettings settings = wandb_settings(options_);
  if (settings.is_disabled) return;
  tell_ranks_apart(settings, run);
  if (settings.notes.empty()) settings.notes = run.description;
  choose_id(settings, run);
  const bool resumes = run.resumed_step > 0 && run_.last_step > 0;
  start_time_ = run.start_time > 0 ? run.start_time : wall_time_now();

  const fs::path folder = make_folder(settings, run);
  file_ = WandbFile(folder / ("run-" + run_.id + ".wandb"));
  is_open_ = true;
  write(wandb_run_record(++num_records_, settings, run.config, host_name(), start_time_, resumes));
  remember_run(remembered_file_, run_);
  say_how_to_upload(folder, settings);
  if (run_.last_step > run.resumed_step)
    log::info("wandb: steps " + std::to_string(run.resumed_step + 1) + " to " +
              std::to_string(run_.last_step) +
              " were logged before; they are repeated and keep their first values");
}

void WandbLogger::choose_id(WandbSettings& settings, const RunInfo& run) {
  make_folders(run.dump_folder / "wandb");
  remembered_file_ = remembered_run_file(run.dump_folder / "wandb", "titan_run", run);
  if (run.resumed_step > 0) run_ = recall_run(remembered_file_);
  const std::string id = !settings.run_id.empty() ? settings.run_id
                         : !run_.id.empty()       ? run_.id
                                                  : random_id(kIdLength);
  if (id != run_.id) run_ = {.id = id};
  settings.run_id = id;
}

/// Creates the folder. Its name has seconds; two starts within one second get different names.
fs::path WandbLogger::make_folder(const WandbSettings& settings, const RunInfo& run) const {
  const fs::path parent = (settings.folder.empty() ? run.dump_folder : settings.folder) / "wandb";
  make_folders(parent);
  for (double time = start_time_;; ++time) {
    const fs::path folder = parent / ("offline-run-" + wandb_time(time) + "-" + run_.id);
    std::error_code reason;
    if (fs::create_directory(folder, reason)) return folder;
    TITAN_CHECK(!reason, io, "cannot create '", folder.string(), "': ", reason.message());
  }
}

/// Whether `step` gets a row; writes the previous row when it is complete.
bool WandbLogger::takes_row(int64_t step) {
  if (!is_open_ || step <= run_.last_step) return false;
  if (step != step_) write_row();
  if (row_.empty()) row_time_ = log_time();
  step_ = step;
  return true;
}

void WandbLogger::log(int64_t step, std::span<const Scalar> scalars) {
  if (scalars.empty() || !takes_row(step)) return;
  for (const Scalar& scalar : scalars) {
    row_.emplace_back(scalar.tag, wandb_number(scalar.value));
    summary_[row_.back().first] = row_.back().second;
  }
}

void WandbLogger::log_histograms(int64_t step, std::span<const Histogram> histograms) {
  if (histograms.empty() || !takes_row(step)) return;
  for (const Histogram& histogram : histograms)
    row_.emplace_back(histogram.tag, wandb_histogram(histogram));
}

void WandbLogger::write_row() {
  if (row_.empty()) return;
  for (auto& [key, value] : std::initializer_list<WandbItem>{
           {"_timestamp", wandb_number(row_time_)},
           {"_runtime", wandb_number(std::max(0.0, row_time_ - start_time_))},
           {"_step", std::to_string(step_)}}) {
    row_.emplace_back(key, value);
    summary_[key] = value;
  }
  write(wandb_history_record(++num_records_, step_, row_));
  row_.clear();
  run_.last_step = step_;
  remember_run(remembered_file_, run_);
  if (std::chrono::steady_clock::now() >= summary_due_) write_summary();
}

void WandbLogger::write_summary() {
  if (summary_.empty()) return;
  write(wandb_summary_record(++num_records_, {summary_.begin(), summary_.end()}));
  summary_.clear();
  summary_due_ = std::chrono::steady_clock::now() + kBetweenSummaries;
}

/// The first failure closes the file: finish() does not try again.
void WandbLogger::write(const std::string& record) {
  is_open_ = false;
  file_.write(record);
  is_open_ = true;
}

void WandbLogger::finish(RunOutcome outcome) noexcept {
  if (!is_open_) return;
  try {
    write_row();
    write_summary();
    write(wandb_exit_record(++num_records_, outcome == RunOutcome::failed ? 1 : 0,
                            std::max(0.0, wall_time_now() - start_time_)));
    is_open_ = false;
    file_.close();
  } catch (const std::exception& error) {
    log::warn(error.what());
  }
}

}  // namespace titan::loggers
