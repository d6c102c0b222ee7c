// Formats a comparison as text and as JSON.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <titan/program/text_table.h>

#include "comparison.h"

namespace titan::commands {
namespace {

constexpr size_t kMostNamed = 12;

/// The shortest text that reads back as the same number.
std::string exact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return to_json(Value(value));
}

std::string count_of(int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string relative(double a, double b) {
  const double largest = std::max(std::abs(a), std::abs(b));
  if (!(largest > 0) || !std::isfinite(largest)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", std::abs(a - b) / largest);
  return text;
}

std::string config_text(const Comparison& c) {
  std::string text = "configuration: ";
  if (c.config.empty())
    text += "no difference that can change numbers";
  else
    text += count_of(static_cast<int64_t>(c.config.size()), "difference", "differences") +
            " that can change numbers";
  if (c.num_harmless > 0)
    text += "; " + count_of(c.num_harmless, "other", "others") + " (folders, logs) cannot";
  text += "\n";
  std::vector<TextRow> rows;
  for (const ConfigDifference& d : c.config)
    rows.push_back({d.key, d.first.empty() ? "(not set)" : d.first,
                    d.second.empty() ? "(not set)" : d.second});
  return text + text_table(std::move(rows), "  ");
}

std::string start_text(const Comparison& c) {
  if (c.num_start == 0) return "";
  if (c.start.empty()) return "start: ranks, tokens a step, device and build are equal\n";
  std::vector<TextRow> rows;
  for (const ConfigDifference& d : c.start) rows.push_back({d.key, d.first, d.second});
  return "start: " + count_of(static_cast<int64_t>(c.start.size()), "difference", "differences") +
         " between the last starts of the runs\n" + text_table(std::move(rows), "  ");
}

std::string steps_text(const StepComparison& steps, const std::string& equal) {
  if (!steps.parts_at)
    return equal + " at all " + std::to_string(steps.num_steps) + " common steps\n";
  std::string text = "they diverge at step " + std::to_string(*steps.parts_at);
  text += steps.last_equal
              ? "; the last equal step recorded before it is " + std::to_string(*steps.last_equal)
              : "; the first step that both recorded";
  return text + "\n";
}

std::string numbers_text(const Comparison& c) {
  if (c.numbers.num_steps == 0) return "numbers: no step in common in metrics.jsonl\n";
  std::string text =
      "numbers: " + steps_text(c.numbers, c.tolerance > 0 ? "within the tolerance" : "equal");
  std::vector<TextRow> rows;
  for (const NumberDifference& d : c.numbers.differences)
    rows.push_back({d.tag, exact(d.first), exact(d.second), relative(d.first, d.second)});
  if (!rows.empty()) rows.insert(rows.begin(), {"", "first", "second", "relative"});
  return text + text_table(std::move(rows), "  ");
}

std::string tokens_text(const StepComparison& tokens) {
  if (tokens.num_steps == 0) return "data: unknown; set debug.fingerprints = true in both runs\n";
  return "data: " + steps_text(tokens, "the same tokens");
}

std::string weights_text(const WeightsComparison& w) {
  const auto list = [](const char* what, const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
      text += std::string("  ") + what + names[i] + "\n";
    if (names.size() > kMostNamed)
      text += "  and " + std::to_string(names.size() - kMostNamed) + " more\n";
    return text;
  };
  if (w.num_weights == 0 && w.only_first.empty() && w.only_second.empty())
    return "initial weights: unknown; set debug.fingerprints = true in both runs\n";
  std::string text = "initial weights: ";
  if (w.different.empty())
    text += "all " + std::to_string(w.num_weights) + " common weights are equal\n";
  else
    text += std::to_string(w.different.size()) + " of " + std::to_string(w.num_weights) +
            " common weights differ\n";
  return text + list("", w.different) + list("only in the first: ", w.only_first) +
         list("only in the second: ", w.only_second);
}

std::string when(const TracedTensor& tensor) {
  const auto [phase, microbatch, layer, sequence] = tensor.key;
  if (phase == 0) return "before the forward";
  if (phase == 3) return "after the backward";
  return std::string(phase == 1 ? "in the forward" : "in the backward") + " of microbatch " +
         std::to_string(microbatch);
}

TextRow row_of(const std::string& of, const TracedTensor& t) {
  std::string shape;
  for (const int64_t size : t.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
  return {of,           t.dtype,      shape,        exact(t.mean),
          exact(t.rms), exact(t.min), exact(t.max), std::to_string(t.num_nan + t.num_inf)};
}

std::string tensors_text(const TraceComparison& t) {
  if (t.num_steps == 0)
    return "tensors: no traced step in common; set debug.trace_tensors = [\"*\"] in both runs "
           "to find the layer\n";
  const std::string unmatched =
      t.num_unmatched == 0
          ? ""
          : "  " + count_of(t.num_unmatched, "tensor has", "tensors have") +
                (t.by_rank
                     ? " no counterpart in the other run\n"
                     : " no counterpart: different microbatches, or split by the layout other "
                       "than by rows\n");
  if (!t.parts_at)
    return "tensors: equal in all " + count_of(t.num_steps, "traced step", "traced steps") + " (" +
           std::to_string(t.num_tensors) + " in the last)\n" + unmatched;
  const TracedTensor& first = t.parts_at->first;
  std::string text = "tensors: they diverge in step " + std::to_string(t.last_step) + ", " +
                     when(first) + ", at " + words_of(first) +
                     (t.by_rank ? " (rank " + std::to_string(first.rank) + ")\n" : "\n");
  text += text_table({{"", "type", "shape", "mean", "rms", "min", "max", "bad"},
                      row_of("first", first),
                      row_of("second", t.parts_at->second)},
                     "  ");
  text += t.before ? "  the last equal one before it is " + words_of(*t.before) + "\n"
                   : "  it is the first tensor that both traced\n";
  text += "  " + std::to_string(t.num_different) + " of the step's " +
          std::to_string(t.num_tensors) + " differ\n";
  return text + unmatched;
}

Value value_of(const TracedTensor& t) {
  const auto [phase, microbatch, layer, sequence] = t.key;
  return Value::map({{"rank", t.rank},
                     {"tensor", t.kind},
                     {"name", t.name},
                     {"microbatch", microbatch},
                     {"dtype", t.dtype},
                     {"mean", t.mean},
                     {"rms", t.rms},
                     {"min", t.min},
                     {"max", t.max},
                     {"nan", t.num_nan},
                     {"inf", t.num_inf}});
}

Value value_of(const StepComparison& steps) {
  Value value = Value::map(
      {{"common_steps", steps.num_steps}, {"last_equal", Value()}, {"parts_at", Value()}});
  if (steps.last_equal) value["last_equal"] = *steps.last_equal;
  if (steps.parts_at) value["parts_at"] = *steps.parts_at;
  return value;
}

Value value_of(const std::vector<std::string>& texts) {
  Value::List list;
  for (const std::string& text : texts) list.emplace_back(text);
  return Value(std::move(list));
}

Value value_of(const TraceComparison& t) {
  Value value = Value::map({{"common_steps", t.num_steps},
                            {"step", t.last_step},
                            {"compared", t.num_tensors},
                            {"different", t.num_different},
                            {"unmatched", t.num_unmatched},
                            {"by_rank", t.by_rank},
                            {"first", Value()},
                            {"second", Value()},
                            {"before", Value()}});
  if (t.parts_at) {
    value["first"] = value_of(t.parts_at->first);
    value["second"] = value_of(t.parts_at->second);
  }
  if (t.before) value["before"] = value_of(*t.before);
  return value;
}

}  // namespace

std::string to_text(const Comparison& c) {
  std::string text = "first:  " + c.first + "\nsecond: " + c.second + "\n\n";
  text += config_text(c) + start_text(c) + numbers_text(c) + tokens_text(c.tokens) +
          weights_text(c.weights) + tensors_text(c.tensors);
  return text +
         (c.are_same() ? "\nno difference in what both runs recorded\n" : "\nthe runs differ\n");
}

Value to_value(const Comparison& c) {
  Value::List config, start, numbers;
  for (const ConfigDifference& d : c.config)
    config.push_back(Value::map({{"key", d.key}, {"first", d.first}, {"second", d.second}}));
  for (const ConfigDifference& d : c.start)
    start.push_back(Value::map({{"key", d.key}, {"first", d.first}, {"second", d.second}}));
  for (const NumberDifference& d : c.numbers.differences)
    numbers.push_back(
        Value::map({{"tag", d.tag}, {"first", exact(d.first)}, {"second", exact(d.second)}}));
  Value of_numbers = value_of(c.numbers);
  of_numbers["differences"] = Value(std::move(numbers));
  return Value::map(
      {{"same", c.are_same()},
       {"first", c.first},
       {"second", c.second},
       {"tolerance", c.tolerance},
       {"configuration", Value(std::move(config))},
       {"harmless_differences", c.num_harmless},
       {"start", Value(std::move(start))},
       {"numbers", of_numbers},
       {"tokens", value_of(c.tokens)},
       {"initial_weights", Value::map({{"common", c.weights.num_weights},
                                       {"different", value_of(c.weights.different)},
                                       {"only_first", value_of(c.weights.only_first)},
                                       {"only_second", value_of(c.weights.only_second)}})},
       {"tensors", value_of(c.tensors)}});
}

}  // namespace titan::commands
