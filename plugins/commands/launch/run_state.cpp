#include "run_state.h"

#include <algorithm>
#include <charconv>
#include <exception>

#include <titan/checkpoints/branches.h>
#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/local_parts.h>
#include <titan/program/clock.h>
#include <titan/runs/rank_status.h>
#include <titan/value.h>

#include "../common/failure_record.h"
#include "../common/run_config.h"

namespace titan::launching {
namespace {

namespace fs = std::filesystem;

/// The result of `read`, or a default if it throws.
template <class Read>
auto if_readable(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::exception&) {
    return {};
  }
}

/// The step that the error itself names.
std::optional<int64_t> named_step(const std::string& error) {
  constexpr std::string_view kBefore = "in training step ";
  const size_t place = error.find(kBefore);
  if (place == std::string::npos) return std::nullopt;
  int64_t step = 0;
  const char* const first = error.data() + place + kBefore.size();
  const auto end = std::from_chars(first, error.data() + error.size(), step);
  return end.ec == std::errc() ? std::optional(step) : std::nullopt;
}

/// The step that the rank reported last.
std::optional<int64_t> reported_step(const fs::path& run_folder, const RankFailure& failure) {
  for (const RankStatus& status : read_rank_statuses(run_folder).ranks)
    if (status.rank == failure.rank && status.pid == failure.pid && status.step >= 0)
      return status.step;
  return std::nullopt;
}

/// A value of the run's configuration; null if it is missing.
Value config_value(const fs::path& run_folder, const char* key) {
  const auto config = commands::read_run_config(run_folder / "config.toml");
  const auto value = config.find(key);
  return value == config.end() ? Value() : parse_json(value->second);
}

fs::path checkpoint_folder(const fs::path& run_folder) {
  return run_folder / config_value(run_folder, "checkpoint.folder").as_string();
}

/// The newest step of the local checkpoints of this host (titan/checkpoints/local_parts.h).
int64_t newest_local(const fs::path& run_folder) {
  const std::optional<Lineage> lineage = read_local_lineage(checkpoint_folder(run_folder));
  const Value local = config_value(run_folder, "checkpoint.local_folder");
  int64_t newest = 0;
  if (!local.is_string() || !lineage) return newest;
  for (const auto& session : fs::directory_iterator(fs::path(local.as_string()) / lineage->job))
    for (const CheckpointStep& step : list_steps(session.path()))
      newest = std::max(newest, step.step);
  return newest;
}

/// Job, branch and step of the newest complete checkpoint.
std::string newest_save(const fs::path& run_folder) {
  const Branches branches(checkpoint_folder(run_folder));
  const auto newest = branches.newest_step({Marker::manifest});
  if (!newest) return "";
  return branches.newest().job + "/" + std::to_string(branches.newest().branch) + "/" +
         std::to_string(newest->step);
}

}  // namespace

FailedAt read_failed_at(const fs::path& run_folder, const RankFailure& failure) {
  FailedAt at;
  at.step = named_step(failure.error);
  at.is_exact = at.step.has_value();
  if (!at.step) at.step = named_step(failure.seen);
  if (run_folder.empty()) return at;
  if (!at.step) at.step = if_readable([&] { return reported_step(run_folder, failure); });
  at.newest_save = if_readable([&] { return newest_save(run_folder); });
  at.newest_local = if_readable([&] { return newest_local(run_folder); });
  return at;
}

std::string record_failure(const LaunchPlan& plan, const RankFailure& failure, const FailedAt& at,
                           const std::string& response) {
  if (plan.run_folder.empty() || !fs::exists(plan.run_folder / "config.toml")) return "";
  try {
    commands::append_failure(plan.run_folder, {.time = wall_seconds(),
                                               .rank = failure.rank,
                                               .world_size = plan.world_size(),
                                               .step = at.step,
                                               .how = failure.how,
                                               .error = failure.error,
                                               .seen = failure.seen,
                                               .log = plan.log_of(failure.rank).string(),
                                               .response = response});
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace titan::launching
