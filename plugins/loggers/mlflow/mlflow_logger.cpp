// See mlflow_logger.h.
#include "mlflow_logger.h"

#include <string>
#include <utility>
#include <vector>

#include "../common/environment.h"
#include "../common/remembered_run.h"
#include "../common/run_files.h"
#include "mlflow_names.h"

namespace titan::loggers {
namespace {

MlflowRun mlflow_run_of(const MlflowSettings& settings, const RunInfo& run) {
  const double start = run.start_time > 0 ? run.start_time : wall_time_now();
  MlflowRun wanted = {.id = settings.run_id,
                      .name = settings.run_name,
                      .start_time_ms = static_cast<int64_t>(start * 1000),
                      .params = mlflow_params(run.config),
                      .tags = {{"mlflow.source.name", "titan"}, {"mlflow.source.type", "LOCAL"}},
                      .id_file = remembered_run_file(run.dump_folder, "mlflow_run", run)};
  const std::string user = option_or_environment("", {"USER", "LOGNAME"});
  if (!user.empty()) wanted.tags.emplace_back("mlflow.user", user);
  if (!run.description.empty()) wanted.tags.emplace_back("mlflow.note.content", run.description);
  if (has_files_per_rank(run)) {
    const std::string rank = "rank_" + std::to_string(run.rank);
    wanted.name += (wanted.name.empty() ? "" : " ") + rank;
    wanted.tags.emplace_back("titan.rank", std::to_string(run.rank));
  }
  const bool was_named = !wanted.id.empty();
  if (!was_named && run.resumed_step > 0) wanted.id = recall_run(wanted.id_file).id;
  wanted.may_be_new = !was_named;
  return wanted;
}

}  // namespace

void MlflowLogger::start(const RunInfo& run) {
  MlflowSettings settings = mlflow_settings(options_);
  MlflowRun wanted = mlflow_run_of(settings, run);
  sender_ = std::make_unique<MlflowSender>(std::move(settings), std::move(wanted));
}

void MlflowLogger::log(int64_t step, std::span<const Scalar> scalars) {
  if (!sender_) return;
  const auto now = static_cast<int64_t>(log_time() * 1000);
  std::vector<MlflowPoint> points;
  points.reserve(scalars.size());
  for (const Scalar& scalar : scalars)
    points.push_back(
        {.key = mlflow_key(scalar.tag), .value = scalar.value, .step = step, .time_ms = now});
  sender_->add(std::move(points));
}

void MlflowLogger::finish(RunOutcome outcome) noexcept {
  if (sender_) sender_->finish(outcome);
  sender_.reset();
}

}  // namespace titan::loggers
