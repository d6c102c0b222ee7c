// Formats the figures of one run as text and as JSON.
#include <algorithm>
#include <cmath>

#include <titan/program/quantity_text.h>
#include <titan/program/text_table.h>

#include "figures.h"
#include "formatted.h"
#include "statistics.h"

namespace titan::commands {
namespace {

std::string seconds_text(double seconds) {
  return seconds < 1 ? formatted("%.4g ms", seconds * 1e3) : formatted("%.4g s", seconds);
}

std::string counted(int64_t count, const char* one, const char* many) {
  return with_commas(count) + " " + (count == 1 ? one : many);
}

std::string step_text(const std::vector<double>& times) {
  const MedianInterval middle = median_interval(times);
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  std::string text = "median " + seconds_text(middle.median);
  text += middle.low
              ? ", 95 % interval " + seconds_text(*middle.low) + " to " + seconds_text(*middle.high)
              : std::string(", too few for an interval");
  return text + "; " + seconds_text(*least) + " to " + seconds_text(*most);
}

std::string shares_text(const BenchFigures& figures, const std::optional<double>& peak) {
  const auto full = figures.share_of(figures.flops_full, peak);
  const auto causal = figures.share_of(figures.flops_causal, peak);
  return formatted("%.2f %% (full attention), %.2f %% (causal half) of %.4g TFLOP/s", 100 * *full,
                   100 * *causal, *peak / 1e12);
}

std::string cpu_text(const BenchFigures& figures) {
  std::string text = formatted("%.4g CPU seconds in all", figures.cpu_seconds);
  if (figures.per_step) {
    text += formatted("; per step %.4g", figures.per_step->cpu_seconds);
    if (figures.per_step->instructions && figures.per_step->cycles)
      text += formatted(", %.4g G instructions, %.4g G cycles of user mode",
                        *figures.per_step->instructions / 1e9, *figures.per_step->cycles / 1e9);
  }
  return figures.counters_refused.empty() ? text : text + "; " + figures.counters_refused;
}

Value optional_value(const std::optional<double>& number) {
  return number ? Value(*number) : Value();
}

Value times_value(const std::vector<double>& times) {
  if (times.empty()) return Value();
  const MedianInterval middle = median_interval(times);
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  Value::List all(times.begin(), times.end());
  return Value::map({{"median", middle.median},
                     {"low", optional_value(middle.low)},
                     {"high", optional_value(middle.high)},
                     {"min", *least},
                     {"max", *most},
                     {"all", std::move(all)}});
}

Value shares_value(const BenchFigures& figures, const std::optional<double>& peak) {
  return Value::map(
      {{"full_attention", optional_value(figures.share_of(figures.flops_full, peak))},
       {"causal_half", optional_value(figures.share_of(figures.flops_causal, peak))}});
}

Value traffic_value(const BenchTraffic& traffic) {
  Value::List rows;
  for (const StepTraffic& row : traffic.rows)
    rows.push_back(Value::map({{"group", row.group},
                               {"operation", row.operation},
                               {"calls", row.calls},
                               {"bytes", row.bytes}}));
  return Value::map({{"step", traffic.step},
                     {"bytes_of_all_ranks", traffic.bytes_of_all_ranks},
                     {"busiest_rank", traffic.busiest_rank},
                     {"by_operation", std::move(rows)}});
}

}  // namespace

std::string to_text(const BenchFigures& figures, const BenchSteps& steps) {
  std::vector<TextRow> rows = {{"command", figures.command}};
  const auto add = [&](const char* name, std::string text) {
    rows.push_back({name, std::move(text)});
  };
  if (!figures.device.empty())
    add("on", counted(figures.ranks, "rank", "ranks") + ", " + figures.device +
                  (figures.compute_dtype.empty() ? "" : ", computes in " + figures.compute_dtype));
  add("measured",
      counted(steps.measured, "step", "steps") + " after " + std::to_string(steps.warmup) +
          " of warm-up" +
          (figures.tokens_per_step > 0
               ? ", " + with_commas(std::llround(figures.tokens_per_step)) + " tokens each"
               : ""));
  add("tokens/s", with_commas(std::llround(figures.tokens_per_second)) + ", per rank " +
                      with_commas(std::llround(figures.tokens_per_second /
                                               static_cast<double>(figures.ranks))));
  if (!figures.step_seconds.empty()) add("step", step_text(figures.step_seconds));
  if (figures.flops_full && figures.peak_flops)
    add("MFU", shares_text(figures, figures.peak_flops) + ", the device's peak");
  if (figures.flops_full && figures.gemm_flops)
    add("of GEMM", shares_text(figures, figures.gemm_flops) + ", measured next to the run");
  if (figures.to_first_step)
    add("first step",
        "begins " + seconds_text(*figures.to_first_step) + " after the launch" +
            (figures.to_first_step_end ? ", ends after " + seconds_text(*figures.to_first_step_end)
                                       : ""));
  add("peak memory", bytes_text(figures.peak_bytes) +
                         (figures.ranks > 1 ? " on the rank with the highest peak" : ""));
  add("CPU", cpu_text(figures));
  std::string text = text_table(rows);
  if (figures.traffic.rows.empty()) return text;
  text += "sent in step " + std::to_string(figures.traffic.step) +
          ", all ranks: " + bytes_text(static_cast<double>(figures.traffic.bytes_of_all_ranks)) +
          "; rank " + std::to_string(figures.traffic.busiest_rank) + ", which sends the most:\n";
  std::vector<TextRow> sent = {{"group", "operation", "calls", "bytes"}};
  for (const StepTraffic& row : figures.traffic.rows)
    sent.push_back({row.group, row.operation, with_commas(row.calls), with_commas(row.bytes)});
  return text + text_table(sent, "  ");
}

Value to_value(const BenchFigures& figures) {
  Value value = Value::map({{"command", figures.command},
                            {"device", figures.device},
                            {"build", figures.build},
                            {"ranks", figures.ranks},
                            {"parameters", figures.parameters},
                            {"compute_dtype", figures.compute_dtype},
                            {"tokens_per_step", figures.tokens_per_step},
                            {"tokens_per_second", figures.tokens_per_second},
                            {"tokens_per_second_per_rank",
                             figures.tokens_per_second / static_cast<double>(figures.ranks)},
                            {"step_seconds", times_value(figures.step_seconds)},
                            {"to_first_step", optional_value(figures.to_first_step)},
                            {"to_first_step_end", optional_value(figures.to_first_step_end)}});
  value["flops_per_token"] = Value::map({{"full_attention", optional_value(figures.flops_full)},
                                         {"causal_half", optional_value(figures.flops_causal)}});
  value["peak_flops"] = optional_value(figures.peak_flops);
  value["mfu"] = shares_value(figures, figures.peak_flops);
  value["gemm_flops"] = optional_value(figures.gemm_flops);
  value["share_of_gemm"] = shares_value(figures, figures.gemm_flops);
  value["peak_bytes"] = figures.peak_bytes;
  value["traffic"] = traffic_value(figures.traffic);
  value["cpu_per_step"] =
      figures.per_step
          ? Value::map({{"cpu_seconds", figures.per_step->cpu_seconds},
                        {"instructions", optional_value(figures.per_step->instructions)},
                        {"cycles", optional_value(figures.per_step->cycles)}})
          : Value();
  value["counters_refused"] = figures.counters_refused;
  value["cpu_seconds"] = figures.cpu_seconds;
  Value medians = Value::map();
  for (const auto& [tag, number] : figures.medians) medians[tag] = number;
  value["medians"] = std::move(medians);
  return value;
}

}  // namespace titan::commands
