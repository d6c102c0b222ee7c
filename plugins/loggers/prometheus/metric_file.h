// Builds a file in Prometheus' text format
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Used by the prometheus logger.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::loggers {

/// Samples by name and labels; a later set() replaces an earlier value.
class MetricFile {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  ///< name, value

  enum class Type { gauge, counter };
  /// Sets one sample. Type and help are those of the first call with this name.
  void set(const std::string& name, Type type, const std::string& help, const Labels& labels,
           double value);
  /// The whole text; HELP and TYPE once per metric.
  std::string text() const;
  /// Replaces `path` atomically by renaming a temporary file in its folder. Throws an io Error.
  void write(const std::filesystem::path& path) const;

 private:
  struct Family {
    Type type;
    std::string help;
    std::map<std::string, double> samples;  // by labels as written
  };
  std::map<std::string, Family> families_;
};

/// The shortest text that reads back as the same value; NaN, +Inf, -Inf.
std::string metric_value(double value);

}  // namespace titan::loggers
