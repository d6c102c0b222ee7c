// See metric_name.h.
#include "metric_name.h"

#include <iterator>

namespace titan::loggers {
namespace {

struct Unit {
  std::string_view ending;
  std::string_view name;
  double factor;
};
constexpr Unit kUnits[] = {
    {"(s)", "_seconds", 1},
    {"(%)", "_ratio", 0.01},
    {"(GiB)", "_bytes", 1024.0 * 1024 * 1024},
    {"(MiB)", "_bytes", 1024.0 * 1024},
    {"(tps)", "_tokens_per_second", 1},
};

struct Known {
  std::string_view tag;
  std::string_view name;
  bool is_counter;
  double factor;
};
/// Tags without a unit.
constexpr Known kKnown[] = {
    {"tflops", "titan_floating_point_operations_per_second", false, 1e12},
    {"n_tokens_seen", "titan_tokens_seen_total", true, 1},
    {"n_tokens_learned", "titan_tokens_learned_total", true, 1},
    {"lr", "titan_learning_rate", false, 1},
};

bool may_stand_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Metric metric_of(std::string_view tag) {
  for (const Known& known : kKnown)
    if (tag == known.tag) return {std::string(known.name), known.is_counter, known.factor};
  Metric metric;
  std::string_view unit;
  for (const Unit& candidate : kUnits) {
    if (!tag.ends_with(candidate.ending)) continue;
    tag.remove_suffix(candidate.ending.size());
    unit = candidate.name;
    metric.factor = candidate.factor;
    break;
  }
  metric.name = "titan_";
  for (const char c : tag) {
    if (may_stand_in_a_name(c))
      metric.name += c;
    else if (metric.name.back() != '_')
      metric.name += '_';
  }
  while (metric.name.back() == '_') metric.name.pop_back();
  // suffixes reserved for other metric types: a gauge must not end in one
  for (const std::string_view taken : {"_total", "_sum", "_count", "_bucket", "_info"})
    if (unit.empty() && metric.name.ends_with(taken)) metric.name += "_value";
  metric.name += unit;
  return metric;
}

}  // namespace titan::loggers
