// Logger `prometheus`: writes the latest values of a run to a file for Prometheus' node exporter.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <titan/logger.h>

#include "metric_file.h"

namespace titan::loggers {

struct PrometheusOptions {
  std::filesystem::path file;  ///< empty = titan.prom in the dump folder
};

/// Rewrites the file at each logged step, for the textfile collector: the name ends in .prom, the
/// file is in the collector's folder, and samples have no timestamps. Every sample has the labels
/// `run` (the name of the dump folder) and `rank`, so that several runs of one machine can be
/// collected.
///
/// `metric_of` names the scalars. In addition: titan_step, titan_steps (planned steps),
/// titan_start_time_seconds, titan_last_log_time_seconds (an alert on it finds hanging runs),
/// titan_running (1 or 0) and titan_run_info with facts about the run as labels.
class PrometheusLogger final : public Logger {
 public:
  PrometheusLogger(const PrometheusOptions& options, LoggerContext) : options_(options) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  void set(const std::string& name, const std::string& help, double value);
  void set_scalar(const Scalar& scalar);

  PrometheusOptions options_;
  std::filesystem::path path_;
  MetricFile::Labels labels_;
  MetricFile file_;
  std::map<std::string, std::string> tags_;  // by metric; empty: a metric of this logger itself
};

}  // namespace titan::loggers
