#include "comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include <titan/error.h>

namespace titan::commands {
namespace {

/// Prefixes of keys without influence on numbers: output, logging, saving, diagnostics.
constexpr std::array<std::string_view, 7> kHarmless = {"job.",    "metrics.", "profiling.", "comm.",
                                                       "logger.", "plugins.", "checkpoint."};
constexpr std::array<std::string_view, 4> kHarmlessDebug = {
    "debug.trace_tensors", "debug.fingerprints", "debug.find_nan", "debug.detect_anomaly"};
/// Keys that choose the initial state of a run.
constexpr std::array<std::string_view, 3> kStart = {
    "checkpoint.initial_load", "checkpoint.load_step", "checkpoint.exclude_from_loading"};

bool is_harmless(std::string_view key) {
  const auto begins = [&](std::string_view prefix) { return key.starts_with(prefix); };
  const auto is_one_of = [&](const auto& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), begins);
  };
  return (is_one_of(kHarmless) || is_one_of(kHarmlessDebug)) && !is_one_of(kStart);
}

std::string value_in(const std::map<std::string, std::string>& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() ? "" : found->second;
}

void compare_configs(const RunRecord& a, const RunRecord& b, Comparison& result) {
  std::set<std::string> keys;
  for (const auto* config : {&a.config, &b.config})
    for (const auto& [key, value] : *config) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string first = value_in(a.config, key), second = value_in(b.config, key);
    if (first == second) continue;
    if (is_harmless(key))
      ++result.num_harmless;
    else
      result.config.push_back({key, first, second});
  }
}

void compare_starts(const RunRecord& a, const RunRecord& b, Comparison& result) {
  for (const auto& [name, first] : a.start) {
    const auto second = b.start.find(name);
    if (second == b.start.end()) continue;
    ++result.num_start;
    if (first != second->second) result.start.push_back({name, first, second->second});
  }
}

bool are_near(double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

std::vector<NumberDifference> differences(const std::map<std::string, double>& a,
                                          const std::map<std::string, double>& b,
                                          double tolerance) {
  std::vector<NumberDifference> found;
  for (const auto& [tag, first] : a) {
    const auto second = b.find(tag);
    if (second != b.end() && !are_near(first, second->second, tolerance))
      found.push_back({tag, first, second->second});
  }
  return found;
}

/// Compares common steps up to the first one for which `differ(a, b)` is true.
template <class Map, class Differ>
StepComparison compare_steps(const Map& a, const Map& b, const Differ& differ) {
  StepComparison result;
  for (const auto& [step, first] : a) {
    const auto second = b.find(step);
    if (second == b.end()) continue;
    ++result.num_steps;
    if (result.parts_at) continue;
    if (differ(first, second->second, result))
      result.parts_at = step;
    else
      result.last_equal = step;
  }
  return result;
}

WeightsComparison compare_weights(const RunRecord& a, const RunRecord& b) {
  WeightsComparison result;
  if (a.weights.empty() || b.weights.empty()) return result;
  const std::map<std::string, std::string> of_a(a.weights.begin(), a.weights.end());
  const std::map<std::string, std::string> of_b(b.weights.begin(), b.weights.end());
  for (const auto& [name, hash] : a.weights) {
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      result.only_first.push_back(name);
      continue;
    }
    ++result.num_weights;
    if (other->second != hash) result.different.push_back(name);
  }
  for (const auto& [name, hash] : b.weights)
    if (!of_a.contains(name)) result.only_second.push_back(name);
  return result;
}

}  // namespace

bool Comparison::are_same() const {
  return !numbers.parts_at && !tokens.parts_at && weights.different.empty() &&
         weights.only_first.empty() && weights.only_second.empty() && !tensors.parts_at;
}

Comparison compare(const RunRecord& a, const RunRecord& b, double tolerance) {
  Comparison result{.first = a.folder, .second = b.folder, .tolerance = tolerance};
  compare_configs(a, b, result);
  compare_starts(a, b, result);
  result.numbers = compare_steps(a.numbers, b.numbers,
                                 [&](const auto& first, const auto& second, StepComparison& into) {
                                   into.differences = differences(first, second, tolerance);
                                   return !into.differences.empty();
                                 });
  result.tokens = compare_steps(a.tokens, b.tokens,
                                [](const auto& x, const auto& y, const auto&) { return x != y; });
  result.weights = compare_weights(a, b);
  result.tensors = compare_traces(a, b, tolerance);
  TITAN_CHECK(result.numbers.num_steps + result.tokens.num_steps + result.weights.num_weights +
                      result.tensors.num_steps >
                  0,
              data, "'", a.folder, "' and '", b.folder,
              "' have no step in common in "
              "metrics.jsonl, fingerprints.jsonl or tensor_trace/; log more often "
              "(metrics.log_freq) with metrics.loggers = [..., \"jsonl\"], or set "
              "debug.fingerprints or debug.trace_tensors in both");
  return result;
}

}  // namespace titan::commands
