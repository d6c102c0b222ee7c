// Logger `prometheus`: the latest numbers of a run where Prometheus' node exporter finds them.
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

/// Writes the whole file anew at each logged step, for the textfile collector: a name that ends in
/// .prom, in its folder, and no times, which it does not take. Every sample has the labels `run`
/// (the name of the dump folder) and `rank`, so that several runs of one machine can be collected.
///
/// Scalars have the names of `metric_of`. Beside them: titan_step, titan_steps (how many there will
/// be), titan_start_time_seconds, titan_last_log_time_seconds (an alert on it finds runs that
/// stand still), titan_running (1 or 0) and titan_run_info with what the run is as labels.
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
  std::map<std::string, std::string> tags_;  // by the metric that has it; empty: our own
};

}  // namespace titan::loggers
