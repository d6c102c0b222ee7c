// Converts tags of scalars to Prometheus metric names. Used by the prometheus logger.
#pragma once

#include <string>
#include <string_view>

namespace titan::loggers {

/// A metric of Prometheus: name and base unit by its conventions
/// (https://prometheus.io/docs/practices/naming/).
struct Metric {
  std::string name;  ///< "titan_memory_max_active_bytes"
  bool is_counter = false;
  double factor = 1;  ///< from the scalar's unit to the base unit
};

/// `tag` as loggers get it: "memory/max_active(GiB)". A trailing unit in parentheses becomes the
/// base unit at the end of the name: (s) seconds, (%) ratio, (GiB) and (MiB) bytes, (tps) tokens
/// per second. Characters that are not allowed become "_".
Metric metric_of(std::string_view tag);

}  // namespace titan::loggers
