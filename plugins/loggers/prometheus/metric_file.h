// A file in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/).
// Used by the prometheus logger.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::loggers {

/// Metrics by name, and within one by its labels: what was set last counts.
class MetricFile {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  ///< name, value

  enum class Type { gauge, counter };
  /// Sets one sample. Type and help are those of the first call with this name.
  void set(const std::string& name, Type type, const std::string& help, const Labels& labels,
           double value);
  /// The whole text; HELP and TYPE once per metric.
  std::string text() const;
  /// Writes it to a file beside `path`, which takes its place: a reader sees the old text or the
  /// new one. Throws an io Error.
  void write(const std::filesystem::path& path) const;

 private:
  struct Family {
    Type type;
    std::string help;
    std::map<std::string, double> samples;  // by labels as they are written
  };
  std::map<std::string, Family> families_;
};

/// Shortest that reads back equal; NaN, +Inf, -Inf.
std::string metric_value(double value);

}  // namespace titan::loggers
