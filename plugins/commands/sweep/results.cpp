#include "results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <titan/files/file.h>
#include <titan/shown_text.h>

namespace titan::commands {
namespace {

std::string shown(double value) {
  if (std::isnan(value)) return "–";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

const Value* value_of(const SweepCase& one, const std::string& key) {
  for (const auto& [name, value] : one.overrides)
    if (name == key) return &value;
  return nullptr;
}

/// NaN and infinities are null in JSON and empty in CSV.
std::string exact(double value) {
  return std::isfinite(value) ? to_json(value) : "";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : printable(text)) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + cell + " |";
  return row + "\n";
}

}  // namespace

int CaseResult::num_missing() const {
  return static_cast<int>(std::count_if(runs.begin(), runs.end(), [](const RunResult& run) {
    return run.state != SweepRun::State::finished;
  }));
}

SweepResult collect(const SweepFile& sweep, const std::vector<SweepRun>& runs) {
  SweepResult result{.metric = sweep.metric};
  for (const SweepCase& one : sweep.cases) {
    for (const auto& [key, value] : one.overrides)
      if (std::find(result.keys.begin(), result.keys.end(), key) == result.keys.end())
        result.keys.push_back(key);
    result.cases.push_back({.the_case = one});
  }
  for (const SweepRun& run : runs) {
    RunResult one{.seed = run.seed, .folder = run.folder.string(), .state = run.state};
    if (run.state == SweepRun::State::finished) one.value = score_of(run, sweep.metric);
    result.cases[run.case_index].runs.push_back(std::move(one));
  }
  for (CaseResult& one : result.cases) {
    std::vector<double> values;
    for (const RunResult& run : one.runs)
      if (run.value) values.push_back(*run.value);
    one.statistics = statistics_of(values);
  }
  return result;
}

std::string to_markdown(const SweepResult& result) {
  std::string text = "Metric: " + printable(to_text(result.metric)) +
                     ". Interval: 95 % of the mean over seeds (Student's t).\n\n";
  text += markdown_row(
      {"case", "seeds", "mean", "± 95 %", "lowest", "highest", "diverged", "not finished"});
  text += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const CaseResult& one : result.cases) {
    const SeedStatistics& numbers = one.statistics;
    text +=
        markdown_row({markdown_cell(one.the_case.name), std::to_string(numbers.values.size()),
                      shown(numbers.mean), numbers.half_width ? shown(*numbers.half_width) : "–",
                      shown(numbers.lowest), shown(numbers.highest),
                      std::to_string(numbers.num_not_finite), std::to_string(one.num_missing())});
  }
  return text;
}

std::string to_csv(const SweepResult& result) {
  std::string text = "case";
  for (const std::string& key : result.keys) text += "," + csv_cell(key);
  text += ",seeds,mean,half_width_95,low_95,high_95,lowest,highest,diverged,not_finished\r\n";
  for (const CaseResult& one : result.cases) {
    const SeedStatistics& numbers = one.statistics;
    text += csv_cell(one.the_case.name);
    for (const std::string& key : result.keys) {
      const Value* value = value_of(one.the_case, key);
      text += "," + (value ? csv_cell(value_text(*value)) : "");
    }
    text += "," + std::to_string(numbers.values.size()) + "," + exact(numbers.mean);
    if (const auto half = numbers.half_width)
      text += "," + exact(*half) + "," + exact(numbers.mean - *half) + "," +
              exact(numbers.mean + *half);
    else
      text += ",,,";
    text += "," + exact(numbers.lowest) + "," + exact(numbers.highest) + "," +
            std::to_string(numbers.num_not_finite) + "," + std::to_string(one.num_missing()) +
            "\r\n";
  }
  return text;
}

Value to_value(const SweepResult& result) {
  Value::List cases;
  for (const CaseResult& one : result.cases) {
    const SeedStatistics& numbers = one.statistics;
    Value overrides = Value::map();
    for (const auto& [key, value] : one.the_case.overrides) overrides[key] = value;
    Value::List runs;
    for (const RunResult& run : one.runs)
      runs.push_back(Value::map({{"seed", run.seed},
                                 {"folder", run.folder},
                                 {"state", to_string(run.state)},
                                 {"value", run.value ? Value(*run.value) : Value()}}));
    Value line = Value::map({{"case", one.the_case.name},
                             {"overrides", overrides},
                             {"seeds", static_cast<int64_t>(numbers.values.size())},
                             {"mean", numbers.mean},
                             {"half_width_95", Value()},
                             {"low_95", Value()},
                             {"high_95", Value()},
                             {"lowest", numbers.lowest},
                             {"highest", numbers.highest},
                             {"diverged", numbers.num_not_finite},
                             {"not_finished", one.num_missing()},
                             {"runs", Value(std::move(runs))}});
    if (const auto half = numbers.half_width) {
      line["half_width_95"] = *half;
      line["low_95"] = numbers.mean - *half;
      line["high_95"] = numbers.mean + *half;
    }
    cases.push_back(std::move(line));
  }
  return Value::map({{"metric", to_text(result.metric)}, {"cases", Value(std::move(cases))}});
}

void write_results(const SweepResult& result, const std::filesystem::path& folder) {
  write_text_atomically(folder / "sweep.md", to_markdown(result));
  write_text_atomically(folder / "sweep.csv", to_csv(result));
  write_text_atomically(folder / "sweep.json", to_json(to_value(result), 2) + "\n");
  write_text_atomically(folder / "sweep.svg", to_svg(result));
}

}  // namespace titan::commands
