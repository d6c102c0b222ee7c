#include <titan/runs/series.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

namespace titan {
namespace {

/// JSON has no NaN or infinity: such values are stored as strings.
std::optional<double> scalar(const Value& value) {
  if (value.is_integer() || value.is_number()) return value.as_number();
  if (!value.is_string()) return std::nullopt;
  const std::string& name = value.as_string();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

void take_line(std::string_view json, SeriesByTag& series) {
  const Value line = parse_json(json);
  const Value* step = line.find("step");
  TITAN_CHECK(step && step->is_integer(), data, "no integer member 'step'");
  for (const auto& [tag, value] : line.as_map()) {
    if (tag == "step") continue;
    if (const std::optional<double> number = scalar(value)) {
      Series& one = series[tag];
      one.steps.push_back(step->as_integer());
      one.values.push_back(*number);
    }
  }
}

/// Sorts by step; the last value of each step counts.
void put_in_order(Series& series) {
  if (std::adjacent_find(series.steps.begin(), series.steps.end(), std::greater_equal<>()) ==
      series.steps.end())
    return;
  std::map<int64_t, double> by_step;
  for (size_t i = 0; i < series.steps.size(); ++i) by_step[series.steps[i]] = series.values[i];
  series = {};
  for (const auto& [step, value] : by_step) {
    series.steps.push_back(step);
    series.values.push_back(value);
  }
}

Bucket bucket_of(const Series& series, size_t begin, size_t end) {
  Bucket bucket{series.steps[begin], series.steps[end - 1], 0, 0, 0};
  size_t count = 0;
  double sum = 0;
  for (size_t i = begin; i < end; ++i) {
    const double value = series.values[i];
    if (!std::isfinite(value)) continue;
    bucket.lowest = count == 0 ? value : std::min(bucket.lowest, value);
    bucket.highest = count == 0 ? value : std::max(bucket.highest, value);
    sum += value;
    ++count;
  }
  bucket.mean = sum / static_cast<double>(count);
  if (count == 0) bucket.lowest = bucket.highest = bucket.mean = std::nan("");
  return bucket;
}

}  // namespace

Metrics parse_metrics(std::string_view text) {
  Metrics metrics;
  for (size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    if (line.empty()) continue;
    try {
      take_line(line, metrics.series);
    } catch (const Error&) {
      ++metrics.num_unreadable;
    }
  }
  for (auto& [tag, series] : metrics.series) put_in_order(series);
  return metrics;
}

Metrics read_metrics(const std::filesystem::path& run_folder) {
  for (const char* name : {"metrics.jsonl", "metrics_rank_0.jsonl"})
    if (std::filesystem::exists(run_folder / name))
      return parse_metrics(read_text(run_folder / name));
  return {};
}

std::vector<Bucket> to_buckets(const Series& series, size_t most) {
  const size_t count = std::min(most, series.steps.size());
  std::vector<Bucket> buckets;
  buckets.reserve(count);
  for (size_t i = 0; i < count; ++i)
    buckets.push_back(
        bucket_of(series, series.steps.size() * i / count, series.steps.size() * (i + 1) / count));
  return buckets;
}

}  // namespace titan
