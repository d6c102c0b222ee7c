// See timeline.h.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <titan/error.h>
#include <titan/pipeline_schedule.h>

#include <titan/pipelines/analysis.h>
#include <titan/pipelines/validation.h>
#include <titan/runs/timeline.h>

namespace titan {
namespace {

using Kind = PipelineAction::Kind;

/// The action of "0F1"; unset for sends, receives and other texts.
std::optional<PipelineAction> action_of(std::string_view text) {
  PipelineAction action;
  const char* end = text.data() + text.size();
  const auto [letter, no_stage] = std::from_chars(text.data(), end, action.stage);
  if (no_stage != std::errc() || letter == end) return std::nullopt;
  constexpr std::string_view kLetters = "FBIW";
  constexpr Kind kKinds[] = {Kind::forward, Kind::backward, Kind::input_grad, Kind::weight_grad};
  const size_t kind = kLetters.find(*letter);
  if (kind == kLetters.npos) return std::nullopt;
  action.kind = kKinds[kind];
  const auto [stop, no_microbatch] = std::from_chars(letter + 1, end, action.microbatch);
  if (no_microbatch != std::errc() || stop != end) return std::nullopt;
  return action;
}

/// The action in "forward of stage 0, microbatch 1 (0F1)"; unset for other names.
std::optional<PipelineAction> action_in(std::string_view name) {
  const size_t open = name.rfind('(');
  if (open == name.npos || !name.ends_with(')')) return action_of(name);
  return action_of(name.substr(open + 1, name.size() - open - 2));
}

/// The rows of a pipeline's ranks; unset if one is missing.
std::optional<PipelineTable> table_of(const std::vector<RankTimeline>& ranks,
                                      const PipelineShape& shape) {
  PipelineTable table(static_cast<size_t>(shape.num_ranks));
  for (const RankTimeline& rank : ranks) {
    if (rank.plan.rank >= shape.num_ranks) continue;
    std::vector<PipelineAction>& row = table[static_cast<size_t>(rank.plan.rank)];
    if (!row.empty()) continue;  // of another replica
    for (const std::string& text : rank.plan.actions)
      if (const std::optional<PipelineAction> action = action_of(text)) row.push_back(*action);
  }
  if (std::any_of(table.begin(), table.end(), [](const auto& row) { return row.empty(); }))
    return std::nullopt;
  if (!table_problems(table, shape).empty()) return std::nullopt;
  return table;
}

/// Mean seconds of the actions of each kind in a step, waiting excluded.
class MeasuredCosts {
 public:
  void add(const TimelineSpan& span) {
    const std::optional<PipelineAction> action = action_in(span.name);
    if (!action) return;
    auto& [sum, count] = sums_[action->kind];
    sum += std::max(0.0, span.end - span.begin - span.waited);
    ++count;
  }
  /// 0 for a kind that was not measured.
  double mean(Kind kind) const {
    const auto found = sums_.find(kind);
    return found == sums_.end() ? 0 : found->second.first / found->second.second;
  }
  /// Unset if a kind is missing. A whole backward counts half for I and half for W.
  std::optional<ActionCosts> costs() const {
    ActionCosts costs{mean(Kind::forward), mean(Kind::input_grad), mean(Kind::weight_grad)};
    const double whole = mean(Kind::backward) / 2;
    if (costs.input_grad == 0) costs.input_grad = whole;
    if (costs.weight_grad == 0) costs.weight_grad = whole;
    if (costs.forward > 0 && costs.input_grad > 0 && costs.weight_grad > 0) return costs;
    return std::nullopt;
  }

 private:
  std::map<Kind, std::pair<double, double>> sums_;
};

/// How often the ranks executed their actions in a step: more than once with gradient accumulation.
int64_t count_rounds(const std::vector<RankTimeline>& ranks, int64_t step) {
  int64_t rounds = 1;
  for (const RankTimeline& rank : ranks)
    for (const TimelineStep& one : rank.steps) {
      if (one.step != step) continue;
      std::map<std::string_view, int64_t> count;
      for (const TimelineSpan& span : one.spans)
        if (action_in(span.name)) rounds = std::max(rounds, ++count[span.name]);
    }
  return rounds;
}

bool is_reasonable(const PipelineShape& shape) {
  constexpr int64_t kMostCells = 1 << 22;
  return shape.num_ranks > 0 && shape.num_stages >= shape.num_ranks &&
         shape.num_stages % shape.num_ranks == 0 && shape.num_microbatches > 0 &&
         int64_t{shape.num_stages} * shape.num_microbatches <= kMostCells;
}

}  // namespace

std::vector<std::vector<PlannedAction>> planned_timeline(const std::vector<RankTimeline>& ranks,
                                                         int64_t step) {
  if (ranks.empty()) return {};
  const TimelinePlan& any = ranks.front().plan;
  const PipelineShape shape{any.num_ranks, any.num_stages, any.num_microbatches};
  if (any.actions.empty() || !is_reasonable(shape)) return {};
  MeasuredCosts measured;
  for (const RankTimeline& rank : ranks)
    for (const TimelineStep& one : rank.steps)
      if (one.step == step)
        for (const TimelineSpan& span : one.spans) measured.add(span);
  const std::optional<ActionCosts> costs = measured.costs();
  const std::optional<PipelineTable> table = table_of(ranks, shape);
  if (!costs || !table) return {};
  const PipelineAnalysis analysis = analyze(
      {.shape = shape, .rank_of_stage = ranks_of_stages(*table, shape), .actions = *table}, *costs);
  const int64_t rounds = count_rounds(ranks, step);
  std::vector<std::vector<PlannedAction>> planned;
  for (const std::vector<TimedAction>& row : analysis.timeline) {
    planned.emplace_back();
    for (int64_t round = 0; round < rounds; ++round) {
      const double before = static_cast<double>(round) * analysis.makespan;
      for (const TimedAction& timed : row)
        planned.back().push_back({to_string(timed.action),
                                  timed.action.kind == Kind::forward ? "forward" : "backward",
                                  before + timed.start, before + timed.end});
    }
  }
  return planned;
}

}  // namespace titan
