// See tensorboard_logger.h.
#include "tensorboard_logger.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <optional>
#include <system_error>

#include <titan/log.h>
#include <titan/value.h>

#include "../common/run_files.h"
#include "event_proto.h"

namespace titan::loggers {
namespace {

namespace fs = std::filesystem;

std::string folder_name(double start_time) {
  const auto seconds = static_cast<std::time_t>(start_time);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> name{};
  std::strftime(name.data(), name.size(), "%Y%m%d-%H%M", &local);
  return name.data();
}

bool is_folder_name(const std::string& name) {
  constexpr std::string_view kPattern = "00000000-0000";
  return std::equal(
      name.begin(), name.end(), kPattern.begin(), kPattern.end(),
      [](unsigned char c, char wanted) { return wanted == '0' ? std::isdigit(c) != 0 : c == '-'; });
}

/// The folder of the latest run in `root`, as far as there is one.
std::optional<fs::path> latest_folder(const fs::path& root) {
  std::optional<fs::path> latest;
  std::error_code unreadable;  // creating the new file there reports it better
  for (const auto& entry : fs::directory_iterator(root, unreadable))
    if (entry.is_directory(unreadable) && is_folder_name(entry.path().filename().string()))
      latest = latest ? std::max(*latest, entry.path()) : entry.path();
  return latest;
}

fs::path run_folder(const fs::path& root, const RunInfo& run) {
  std::optional<fs::path> folder;
  if (run.resumed_step > 0) folder = latest_folder(root);
  if (!folder) folder = root / folder_name(run.start_time > 0 ? run.start_time : wall_time_now());
  return has_files_per_rank(run) ? *folder / ("rank_" + std::to_string(run.rank)) : *folder;
}

std::string as_markdown(const Value& config) {
  return "```json\n" + to_json(config, 2) + "\n```\n";
}

}  // namespace

void TensorboardLogger::start(const RunInfo& run) {
  file_ = EventFile(run_folder(run.dump_folder / folder_, run));
  const double now = wall_time_now();
  if (run.resumed_step > 0) file_.write(session_start_event(now, run.resumed_step + 1));
  file_.write(text_event(now, run.resumed_step, "config", as_markdown(run.config)));
}

void TensorboardLogger::log(int64_t step, std::span<const Scalar> scalars) {
  if (!scalars.empty()) file_.write(scalars_event(wall_time_now(), step, scalars));
}

void TensorboardLogger::finish(RunOutcome) noexcept {
  try {
    file_.close();
  } catch (const std::exception& error) {
    titan::log::warn(error.what());
  }
}

}  // namespace titan::loggers
