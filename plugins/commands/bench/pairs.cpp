#include "pairs.h"

#include <cmath>

#include <titan/program/text_table.h>

#include "formatted.h"

namespace titan::commands {
namespace {

using Figure = std::function<std::optional<double>(const BenchFigures&)>;

/// One of the CPU counts per token.
template <class Count>
Figure per_token(Count CpuCounts::*count) {
  return [count](const BenchFigures& figures) -> std::optional<double> {
    if (!figures.per_step || figures.tokens_per_step <= 0) return std::nullopt;
    const std::optional<double> number = *figures.per_step.*count;
    return number ? std::optional(*number / figures.tokens_per_step) : std::nullopt;
  };
}

const std::vector<std::pair<const char*, Figure>>& compared_figures() {
  static const std::vector<std::pair<const char*, Figure>> kFigures = {
      {"tokens_per_second",
       [](const BenchFigures& f) { return std::optional(f.tokens_per_second); }},
      {"peak_bytes", [](const BenchFigures& f) { return std::optional(f.peak_bytes); }},
      {"to_first_step", [](const BenchFigures& f) { return f.to_first_step; }},
      {"instructions", per_token(&CpuCounts::instructions)},
      {"cycles", per_token(&CpuCounts::cycles)},
      {"cpu_seconds", per_token(&CpuCounts::cpu_seconds)},
      {"gemm_flops", [](const BenchFigures& f) { return f.gemm_flops; }},
  };
  return kFigures;
}

/// Empty unless both sides of every pair have the figure.
std::vector<double> ratios_by_pair(const BenchPairs& pairs, const Figure& figure) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.a.size(); ++i) {
    const std::optional<double> a = figure(pairs.a[i]), b = figure(pairs.b[i]);
    if (!a || !b || !(*a > 0) || !(*b > 0)) return {};
    ratios.push_back(*a / *b);
  }
  return ratios;
}

std::string interval_text(const MedianInterval& middle) {
  if (!middle.low) return "none";
  return formatted("%.3f to %.3f", *middle.low, *middle.high);
}

}  // namespace

const char* BenchRatio::verdict() const {
  if (middle.low && *middle.low > 1) return "above 1";
  if (middle.high && *middle.high < 1) return "below 1";
  return "inconclusive";
}

BenchPairs run_pairs(int64_t num_pairs, const std::function<BenchFigures(bool)>& run,
                     const std::function<void(const BenchPairs&)>& done) {
  BenchPairs pairs;
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    const bool a_is_first = pair % 2 == 0;
    for (const bool is_a : {a_is_first, !a_is_first})
      (is_a ? pairs.a : pairs.b).push_back(run(is_a));
    done(pairs);
  }
  return pairs;
}

std::vector<BenchRatio> ratios_of(const BenchPairs& pairs) {
  std::vector<BenchRatio> ratios;
  for (const auto& [name, figure] : compared_figures())
    if (std::vector<double> values = ratios_by_pair(pairs, figure); !values.empty())
      ratios.push_back({name, values, median_interval(values)});
  return ratios;
}

std::string to_text(const std::vector<BenchRatio>& ratios) {
  std::vector<TextRow> rows = {{"A over B", "median", "95 % interval", "verdict"}};
  for (const BenchRatio& ratio : ratios)
    rows.push_back({ratio.name, formatted("%.3f", ratio.middle.median), interval_text(ratio.middle),
                    ratio.verdict()});
  return text_table(rows);
}

Value to_value(const std::vector<BenchRatio>& ratios) {
  Value value = Value::map();
  for (const BenchRatio& ratio : ratios) {
    const auto number = [](const std::optional<double>& x) { return x ? Value(*x) : Value(); };
    value[ratio.name] =
        Value::map({{"median", ratio.middle.median},
                    {"low", number(ratio.middle.low)},
                    {"high", number(ratio.middle.high)},
                    {"verdict", ratio.verdict()},
                    {"pairs", Value(Value::List(ratio.pairs.begin(), ratio.pairs.end()))}});
  }
  return value;
}

}  // namespace titan::commands
