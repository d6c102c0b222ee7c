#include "figures.h"

#include <algorithm>
#include <cmath>

#include <titan/error.h>
#include <titan/program/units.h>
#include <titan/runs/event.h>
#include <titan/runs/rank_status.h>
#include <titan/runs/series.h>

#include "statistics.h"

namespace titan::commands {
namespace {

std::optional<double> number_in(const Value& map, std::string_view name) {
  const Value* member = map.find(name);
  if (!member || !(member->is_number() || member->is_integer())) return std::nullopt;
  return member->as_number();
}

std::string text_in(const Value& map, std::string_view name) {
  const Value* member = map.find(name);
  return member && member->is_string() ? member->as_string() : std::string();
}

/// Values of `series` in the measured steps.
std::vector<double> measured(const Series& series, const BenchSteps& steps) {
  std::vector<double> values;
  for (size_t i = 0; i < series.steps.size(); ++i)
    if (series.steps[i] > steps.warmup && series.steps[i] <= steps.all())
      values.push_back(series.values[i]);
  return values;
}

void take_start(const Value& start, BenchFigures& figures) {
  figures.device = text_in(start, "device");
  figures.build = text_in(start, "titan");
  figures.compute_dtype = text_in(start, "compute_dtype");
  figures.ranks = static_cast<int64_t>(number_in(start, "world_size").value_or(1));
  figures.parameters = static_cast<int64_t>(number_in(start, "parameters").value_or(0));
  figures.tokens_per_step = number_in(start, "tokens_per_step").value_or(0);
  if (const Value* flops = start.find("flops_per_token")) {
    figures.flops_full = number_in(*flops, "full_attention");
    figures.flops_causal = number_in(*flops, "causal_half");
  }
  if (const auto peak = number_in(start, "peak_flops"))
    figures.peak_flops = *peak * static_cast<double>(figures.ranks);
  if (const Value* config = start.find("config"))
    if (const Value* device = config->find("device"))
      figures.device_name = text_in(*device, "name");
}

void take_history(const RunHistory& history, double launched, BenchFigures& figures) {
  for (const RunEvent& event : history.events) {
    if (event.kind == RunEvent::Kind::start) take_start(event.details, figures);
    if (event.kind == RunEvent::Kind::first_step) figures.to_first_step_end = event.time - launched;
  }
}

/// The first recorded step after the warm-up, else the last recorded step.
BenchTraffic traffic_of(const std::vector<RankTimeline>& ranks, const BenchSteps& steps) {
  BenchTraffic traffic;
  if (ranks.empty()) return traffic;
  for (const TimelineStep& step : ranks.front().steps)
    if (traffic.step <= steps.warmup) traffic.step = step.step;
  int64_t most = -1;
  for (const RankTimeline& rank : ranks)
    for (const TimelineStep& step : rank.steps) {
      if (step.step != traffic.step) continue;
      int64_t bytes = 0;
      for (const StepTraffic& row : step.traffic) bytes += row.bytes;
      traffic.bytes_of_all_ranks += bytes;
      if (bytes <= most) continue;
      most = bytes;
      traffic.busiest_rank = rank.rank;
      traffic.rows = step.traffic;
    }
  return traffic;
}

/// Between the first mark with counts after the warm-up and the mark of the last step.
std::optional<CpuCounts> counts_per_step(const MeasuredRun& run, const BenchSteps& steps) {
  const StepMark *first = nullptr, *last = nullptr;
  for (const StepMark& mark : run.marks) {
    if (!mark.counts || mark.step < steps.warmup) continue;
    if (!first) first = &mark;
    if (mark.step == steps.all()) last = &mark;
  }
  if (!last || first == last) return std::nullopt;
  CpuCounts counts = *last->counts - *first->counts;
  const auto n = static_cast<double>(last->step - first->step);
  counts.cpu_seconds /= n;
  if (counts.instructions) *counts.instructions /= n;
  if (counts.cycles) *counts.cycles /= n;
  return counts;
}

void take_process(const MeasuredRun& run, const BenchSteps& steps, BenchFigures& figures) {
  figures.per_step = counts_per_step(run, steps);
  figures.counters_refused = run.counters_refused;
  const bool is_end_counted =
      std::any_of(run.marks.begin(), run.marks.end(), [&](const StepMark& mark) {
        return mark.step == steps.all() && mark.counts.has_value();
      });
  if (!figures.per_step && is_end_counted)
    figures.counters_refused = "the measured steps were too short to read counters between them";
  else if (!figures.per_step && figures.counters_refused.empty())
    figures.counters_refused = "the program did not report the end of its steps";
  figures.cpu_seconds = run.cpu_seconds;
}

}  // namespace

std::optional<double> BenchFigures::share_of(const std::optional<double>& flops_per_token,
                                             const std::optional<double>& peak) const {
  if (!flops_per_token || !peak || *peak <= 0) return std::nullopt;
  return *flops_per_token * tokens_per_second / *peak;
}

BenchFigures figures_of_titan(const std::filesystem::path& folder, const MeasuredRun& run,
                              const BenchSteps& steps) {
  BenchFigures figures;
  take_history(read_history(folder), run.launched, figures);
  const Metrics metrics = read_metrics(folder);
  for (const auto& [tag, series] : metrics.series)
    if (const std::vector<double> values = measured(series, steps); !values.empty())
      figures.medians[tag] = median(values);
  if (const auto times = metrics.series.find("time_metrics/end_to_end(s)");
      times != metrics.series.end())
    figures.step_seconds = measured(times->second, steps);
  TITAN_CHECK(static_cast<int64_t>(figures.step_seconds.size()) * steps.interval == steps.measured,
              data, "the run recorded the times of ",
              static_cast<int64_t>(figures.step_seconds.size()) * steps.interval, " of ",
              steps.measured, " measured steps in '", folder.string(), "'");
  figures.tokens_per_second = figures.tokens_per_step / median(figures.step_seconds);
  if (const auto peaks = metrics.series.find("memory/max_active(GiB)");
      peaks != metrics.series.end())
    for (const double gib : peaks->second.values)
      figures.peak_bytes = std::max(figures.peak_bytes, gib * kGiB);
  // peaks of the other ranks, from their status at the last interval
  for (const RankStatus& status : read_rank_statuses(folder).ranks)
    if (std::isfinite(status.memory_bytes))
      figures.peak_bytes = std::max(figures.peak_bytes, status.memory_bytes);
  const std::vector<RankTimeline> timelines = read_timelines(folder);
  figures.traffic = traffic_of(timelines, steps);
  if (!timelines.empty() && !timelines.front().steps.empty() &&
      timelines.front().steps.front().step == 1)
    figures.to_first_step = timelines.front().steps.front().begin - run.launched;
  take_process(run, steps, figures);
  return figures;
}

BenchFigures figures_of_other(const MeasuredRun& run, const BenchSteps& steps) {
  std::optional<Value> reported;
  std::string_view text = run.output;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() != '{') continue;
    try {
      Value value = parse_json(line);
      if (value.find("tokens_per_second")) reported = std::move(value);
    } catch (const Error&) {  // not JSON: other output of the program
    }
  }
  TITAN_CHECK(reported, data,
              "the other command printed no line of JSON with \"tokens_per_second\"; "
              "docs/guides/bench.md says what titan bench reads");
  BenchFigures figures;
  const auto speed = number_in(*reported, "tokens_per_second");
  TITAN_CHECK(speed && std::isfinite(*speed) && *speed > 0, data,
              "\"tokens_per_second\" of the other command is not a number above 0: ",
              to_json(reported->at("tokens_per_second")));
  figures.tokens_per_second = *speed;
  if (const Value* times = reported->find("step_seconds"); times && times->is_list())
    for (const Value& time : times->as_list()) {
      TITAN_CHECK((time.is_number() || time.is_integer()) && time.as_number() > 0, data,
                  "\"step_seconds\" of the other command holds ", to_json(time),
                  ", which is not a time");
      figures.step_seconds.push_back(time.as_number());
    }
  figures.tokens_per_step =
      number_in(*reported, "tokens_per_step")
          .value_or(figures.step_seconds.empty() ? 0 : *speed * median(figures.step_seconds));
  figures.peak_bytes =
      number_in(*reported, "peak_bytes").value_or(static_cast<double>(run.peak_resident_bytes));
  figures.to_first_step = number_in(*reported, "to_first_step");
  figures.device = text_in(*reported, "device");
  figures.build = text_in(*reported, "build");
  figures.ranks = static_cast<int64_t>(number_in(*reported, "ranks").value_or(1));
  take_process(run, steps, figures);
  return figures;
}

}  // namespace titan::commands
