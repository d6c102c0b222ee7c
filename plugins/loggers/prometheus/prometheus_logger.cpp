// See prometheus_logger.h.
#include "prometheus_logger.h"

#include <titan/log.h>
#include <titan/shown_text.h>

#include "../common/run_files.h"
#include "metric_name.h"

namespace titan::loggers {
namespace {

namespace fs = std::filesystem;

fs::path path_of(const PrometheusOptions& options, const RunInfo& run) {
  fs::path path = options.file.empty() ? run.dump_folder / "titan.prom" : options.file;
  if (has_files_per_rank(run))
    path.replace_filename(path.stem().string() + "_rank_" + std::to_string(run.rank) +
                          path.extension().string());
  return path;
}

/// "outputs" of "./outputs/"
std::string run_name(const RunInfo& run) {
  const fs::path folder = fs::absolute(run.dump_folder).lexically_normal();
  return folder.has_filename() ? folder.filename().string()
                               : folder.parent_path().filename().string();
}

const char* name_of(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::finished:
      return "finished";
    case RunOutcome::stopped:
      return "stopped";
    case RunOutcome::failed:
      break;
  }
  return "failed";
}

}  // namespace

void PrometheusLogger::start(const RunInfo& run) {
  path_ = path_of(options_, run);
  labels_ = {{"run", printable(run_name(run))}, {"rank", std::to_string(run.rank)}};
  MetricFile::Labels info = labels_;
  info.emplace_back("description", printable(run.description));
  info.emplace_back("world_size", std::to_string(run.world_size));
  file_.set("titan_run_info", MetricFile::Type::gauge, "Facts about the run, as labels.", info, 1);
  set("titan_start_time_seconds", "Start of the run, in seconds since 1970.", run.start_time);
  set("titan_step", "The last logged step.", static_cast<double>(run.resumed_step));
  if (run.num_steps > 0)
    set("titan_steps", "The number of steps of the run.", static_cast<double>(run.num_steps));
  set("titan_running", "1 while the run is active, 0 after its end.", 1);
  file_.write(path_);
}

void PrometheusLogger::log(int64_t step, std::span<const Scalar> scalars) {
  set("titan_step", "The last logged step.", static_cast<double>(step));
  set("titan_last_log_time_seconds", "Time of the last logged step, in seconds since 1970.",
      log_time());
  for (const Scalar& scalar : scalars) set_scalar(scalar);
  file_.write(path_);
}

void PrometheusLogger::finish(RunOutcome outcome) noexcept {
  if (path_.empty()) return;
  try {
    set("titan_running", "1 while the run is active, 0 after its end.", 0);
    MetricFile::Labels labels = labels_;
    labels.emplace_back("outcome", name_of(outcome));
    file_.set("titan_outcome", MetricFile::Type::gauge, "Outcome of the run, as a label.", labels,
              1);
    file_.write(path_);
  } catch (const std::exception& error) {
    if (outcome != RunOutcome::failed)
      titan::log::warn(error.what());  // a failed run has reported its own error
  }
}

void PrometheusLogger::set(const std::string& name, const std::string& help, double value) {
  tags_.try_emplace(name);
  file_.set(name, MetricFile::Type::gauge, help, labels_, value);
}

/// When two tags map to the same name, the later one gets a label `tag`.
void PrometheusLogger::set_scalar(const Scalar& scalar) {
  const Metric metric = metric_of(scalar.tag);
  const std::string tag(scalar.tag);
  MetricFile::Labels labels = labels_;
  if (tags_.try_emplace(metric.name, tag).first->second != tag) labels.emplace_back("tag", tag);
  // equal help texts in all files of a machine: the collector rejects a metric with two texts
  file_.set(metric.name, metric.is_counter ? MetricFile::Type::counter : MetricFile::Type::gauge,
            "Scalar " + tag + " of a training run, last logged value.", labels,
            scalar.value * metric.factor);
}

}  // namespace titan::loggers
