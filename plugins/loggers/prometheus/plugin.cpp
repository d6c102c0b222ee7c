// Registers the logger `prometheus`.
#include <titan/plugin.h>

#include "prometheus_logger.h"

TITAN_PLUGIN(plugin) {
  using titan::loggers::PrometheusOptions;
  plugin
      .add<titan::loggers::PrometheusLogger>(
          "prometheus",
          "The latest numbers in a file for the textfile collector of Prometheus' node exporter.")
      .option(
          "file", &PrometheusOptions::file,
          "Path of the file; unset: titan.prom in job.dump_folder. When every rank writes its own, "
          "_rank_<r> is inserted before its suffix");
}
