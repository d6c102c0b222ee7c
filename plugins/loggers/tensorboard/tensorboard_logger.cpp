// See tensorboard_logger.h.
#include "tensorboard_logger.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <optional>
#include <system_error>
#include <vector>

#include <titan/log.h>
#include <titan/value.h>

#include "../common/run_files.h"
#include "config_text.h"
#include "event_proto.h"
#include "summary_proto.h"

namespace titan::loggers {
namespace {

namespace fs = std::filesystem;

std::string folder_name(double start_time) {
  const auto seconds = static_cast<std::time_t>(start_time);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> name{};
  std::strftime(name.data(), name.size(), "%Y%m%d-%H%M%S", &local);
  return name.data();
}

bool is_folder_name(const std::string& name) {
  constexpr std::string_view kPattern = "00000000-000000";  // older names have no seconds
  const auto fits = [](unsigned char c, char wanted) {
    return wanted == '0' ? std::isdigit(c) != 0 : c == '-';
  };
  return (name.size() == kPattern.size() || name.size() == kPattern.size() - 2) &&
         std::equal(name.begin(), name.end(), kPattern.begin(), fits);
}

/// The folder of the latest run in `root`; none if there is no run.
std::optional<fs::path> latest_folder(const fs::path& root) {
  std::optional<fs::path> latest;
  std::error_code unreadable;  // creating the new file there reports it better
  for (const auto& entry : fs::directory_iterator(root, unreadable))
    if (entry.is_directory(unreadable) && is_folder_name(entry.path().filename().string()))
      latest = latest ? std::max(*latest, entry.path()) : entry.path();
  return latest;
}

/// A resumed run continues in the latest folder. Any other run gets a new one, named by its start;
/// if an earlier run began in the same second, by the next second that is free.
fs::path run_folder(const fs::path& root, const RunInfo& run) {
  const auto of_rank = [&](const fs::path& folder) {
    return has_files_per_rank(run) ? folder / ("rank_" + std::to_string(run.rank)) : folder;
  };
  if (run.resumed_step > 0)
    if (const std::optional<fs::path> latest = latest_folder(root)) return of_rank(*latest);
  double time = run.start_time > 0 ? run.start_time : wall_time_now();
  std::error_code unreadable;
  while (fs::exists(of_rank(root / folder_name(time)), unreadable)) ++time;
  return of_rank(root / folder_name(time));
}

constexpr std::string_view kSessionSuffix = ".session";

/// Files in `folder` with sessions of the HParams dashboard.
std::vector<fs::path> sessions_in(const fs::path& folder) {
  std::vector<fs::path> sessions;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (entry.path().filename().string().ends_with(kSessionSuffix))
      sessions.push_back(entry.path());
  return sessions;
}

const std::vector<Chart>& charts() {
  static const std::vector<Chart> kCharts = {
      {"loss", {R"(loss_metrics/global_(avg|max)_loss)", "validation_metrics/loss"}},
      {"gradient norm", {"grad_norm"}},
      {"learning rate", {"lr"}},
      {"tokens per second", {R"((validation_metrics/)?throughput\(tps\))"}},
      {"memory (GiB)", {R"((validation_metrics/)?memory/.*\(GiB\))"}},
      {"seconds of a step", {R"(time_metrics/.*\(s\))"}},
      {"share of the peak, of the time (%)", {R"(mfu\(%\))", R"(goodput\(%\))"}},
  };
  return kCharts;
}

}  // namespace

void TensorboardLogger::start(const RunInfo& run) {
  const fs::path folder = run_folder(run.dump_folder / folder_, run);
  if (run.rank == 0) start_session(folder, run);
  file_ = EventFile(folder);
  const double now = wall_time_now();
  const int64_t step = run.resumed_step;
  // the server's Python loader takes the first one of a folder for that of the fresh run
  for (int i = 0; step > 0 && i < 2; ++i) file_.write(session_start_event(now, step + 1));
  file_.write(text_event(now, step, "config", config_as_json(run.config)));
  for (const auto& [section, table] : config_as_tables(run.config))
    file_.write(text_event(now, step, "config/" + section, table));
  if (run.rank == 0) file_.write(custom_scalars_event(now, step, "run", charts()));
}

/// Readers keep the first session that they find in a folder, so only the latest is kept.
void TensorboardLogger::start_session(const fs::path& folder, const RunInfo& run) {
  const std::vector<fs::path> earlier = sessions_in(folder);
  session_ = EventFile(folder, kSessionSuffix);
  const double start = run.start_time > 0 ? run.start_time : wall_time_now();
  session_->write(hparams_start_event(start, config_as_hparams(run.config)));
  std::error_code ignored;
  for (const fs::path& path : earlier) fs::remove(path, ignored);
}

void TensorboardLogger::log(int64_t step, std::span<const Scalar> scalars) {
  if (!scalars.empty()) file_.write(scalars_event(log_time(), step, scalars));
}

void TensorboardLogger::log_histograms(int64_t step, std::span<const Histogram> histograms) {
  if (!histograms.empty()) file_.write(histograms_event(log_time(), step, histograms));
}

void TensorboardLogger::finish(RunOutcome outcome) noexcept {
  try {
    file_.close();
    if (!session_) return;
    session_->write(hparams_end_event(wall_time_now(), outcome));
    session_->close();
  } catch (const std::exception& error) {
    if (outcome != RunOutcome::failed)
      titan::log::warn(error.what());  // a failed run has reported its own error
  }
}

}  // namespace titan::loggers
