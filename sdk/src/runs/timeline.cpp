#include <titan/runs/timeline.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/runs/rank_status.h>
#include <titan/value.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

double number_in(const Value& value, std::string_view name) {
  const Value& member = value.at(name);
  TITAN_CHECK(member.is_number() || member.is_integer(), data, "member '", name,
              "' is not a number");
  return member.as_number();
}

std::string text_in(const Value& value, std::string_view name) {
  const Value* member = value.find(name);
  return member && member->is_string() ? member->as_string() : std::string();
}

int small_count(const Value& value, std::string_view name) {
  constexpr int64_t kMost = 1 << 20;
  const Value& member = value.at(name);
  TITAN_CHECK(member.is_integer() && member.as_integer() >= 0 && member.as_integer() <= kMost, data,
              "member '", name, "' is not a count");
  return static_cast<int>(member.as_integer());
}

TimelinePlan plan_of(const Value& value) {
  TimelinePlan plan;
  if (!value.is_map()) return plan;
  plan.schedule = text_in(value, "schedule");
  plan.rank = small_count(value, "rank");
  plan.num_ranks = small_count(value, "num_ranks");
  plan.num_stages = small_count(value, "num_stages");
  plan.num_microbatches = small_count(value, "num_microbatches");
  if (const Value* actions = value.find("actions"); actions && actions->is_list())
    for (const Value& action : actions->as_list())
      if (action.is_string()) plan.actions.push_back(action.as_string());
  return plan;
}

TimelineSpan span_of(const Value& value) {
  TimelineSpan span;
  span.phase = text_in(value, "phase");
  span.name = text_in(value, "name");
  span.begin = number_in(value, "begin");
  span.end = number_in(value, "end");
  span.waited = value.find("waited") ? number_in(value, "waited") : 0;
  TITAN_CHECK(std::isfinite(span.begin) && std::isfinite(span.end) && span.begin <= span.end &&
                  span.waited >= 0,
              data, "a span ends before it begins");
  return span;
}

/// Traffic counts of this version's ranks; absent in the files of earlier ones.
std::vector<StepTraffic> traffic_of(const Value& line) {
  std::vector<StepTraffic> rows;
  const Value* list = line.find("traffic");
  if (!list || !list->is_list()) return rows;
  for (const Value& row : list->as_list()) {
    const Value &calls = row.at("calls"), &bytes = row.at("bytes");
    TITAN_CHECK(calls.is_integer() && bytes.is_integer(), data,
                "a count of traffic is not an integer");
    rows.push_back(
        {text_in(row, "group"), text_in(row, "operation"), calls.as_integer(), bytes.as_integer()});
  }
  return rows;
}

TimelineStep step_of(const Value& line) {
  TimelineStep step;
  const Value& number_of_step = line.at("step");
  TITAN_CHECK(number_of_step.is_integer(), data, "member 'step' is not an integer");
  step.step = number_of_step.as_integer();
  step.begin = number_in(line, "begin");
  const Value& spans = line.at("spans");
  TITAN_CHECK(spans.is_list(), data, "member 'spans' is not a list");
  for (const Value& span : spans.as_list()) step.spans.push_back(span_of(span));
  step.traffic = traffic_of(line);
  return step;
}

}  // namespace

RankTimeline parse_timeline(std::string_view lines, int64_t rank) {
  RankTimeline timeline;
  timeline.rank = rank;
  std::map<int64_t, TimelineStep> steps;
  for (size_t end = 0; (end = lines.find('\n')) != lines.npos; lines.remove_prefix(end + 1)) {
    if (end == 0) continue;
    try {
      const Value line = parse_json(lines.substr(0, end));
      if (const Value* plan = line.find("plan")) {
        timeline.plan = plan_of(*plan);
      } else {
        TimelineStep step = step_of(line);
        steps[step.step] = std::move(step);
      }
    } catch (const Error&) {
      ++timeline.num_unreadable;
    }
  }
  for (auto& [number_of_step, step] : steps) timeline.steps.push_back(std::move(step));
  return timeline;
}

std::vector<RankTimeline> read_timelines(const fs::path& run_folder) {
  std::vector<RankTimeline> timelines;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(run_folder / "timeline", error))
    if (const std::optional<int64_t> rank = rank_in_name(file.path().filename().string(), ".jsonl"))
      timelines.push_back(parse_timeline(read_text(file.path()), *rank));
  std::sort(timelines.begin(), timelines.end(),
            [](const RankTimeline& a, const RankTimeline& b) { return a.rank < b.rank; });
  return timelines;
}

}  // namespace titan
