// See analysis.h.
#include <titan/pipelines/analysis.h>

#include <algorithm>

#include <titan/error.h>
#include <titan/pipelines/progress.h>
#include <titan/pipelines/table_csv.h>

namespace titan {
namespace {

using Kind = PipelineAction::Kind;

/// Executes the table and records when each output and each gradient was ready.
class Clockwork {
 public:
  Clockwork(const PipelinePlan& plan, const ActionCosts& costs)
      : shape_(plan.shape), costs_(costs), table_(compute_table(plan)), progress_(plan.shape) {
    const size_t cells =
        static_cast<size_t>(shape_.num_stages) * static_cast<size_t>(shape_.num_microbatches);
    output_at_.resize(cells);
    gradient_at_.resize(cells);
  }

  std::vector<std::vector<TimedAction>> run() {
    std::vector<std::vector<TimedAction>> timeline(table_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < table_.size(); ++rank)
        while (step(table_[rank], timeline[rank])) moved = true;
    }
    for (size_t rank = 0; rank < table_.size(); ++rank)
      TITAN_ASSERT(timeline[rank].size() == table_[rank].size(), "rank ", rank, " is stuck");
    return timeline;
  }

 private:
  bool step(const std::vector<PipelineAction>& list, std::vector<TimedAction>& timed) {
    const size_t begin = timed.size();
    if (begin == list.size() || progress_.awaited(list, begin)) return false;
    const size_t end = begin + num_together(list, begin);
    double now = timed.empty() ? 0 : timed.back().end;
    for (size_t i = begin; i < end; ++i) now = std::max(now, ready_at(list[i]));
    for (size_t i = begin; i < end; ++i) {
      const double start = now;
      now += costs_.of(list[i].kind);
      timed.push_back({list[i], start, now});
      finish(list[i], now);
    }
    return true;
  }

  double ready_at(const PipelineAction& action) const {
    if (action.kind == Kind::forward)
      return action.stage == 0 ? 0 : output_at_[cell(action.stage - 1, action.microbatch)];
    if (action.kind == Kind::weight_grad || action.stage + 1 == shape_.num_stages) return 0;
    return gradient_at_[cell(action.stage + 1, action.microbatch)];
  }

  void finish(const PipelineAction& action, double end) {
    progress_.finish(action);
    if (action.kind == Kind::forward) output_at_[cell(action.stage, action.microbatch)] = end;
    if (action.kind == Kind::backward || action.kind == Kind::input_grad)
      gradient_at_[cell(action.stage, action.microbatch)] = end;
  }

  size_t cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(shape_.num_microbatches) +
           static_cast<size_t>(microbatch);
  }

  const PipelineShape shape_;
  const ActionCosts costs_;
  const PipelineTable table_;
  Progress progress_;
  std::vector<double> output_at_, gradient_at_;
};

RankUse use_of(const std::vector<TimedAction>& actions, double makespan) {
  RankUse use;
  int kept = 0, kept_until_input_grad = 0;
  for (const TimedAction& timed : actions) {
    use.busy += timed.end - timed.start;
    const Kind kind = timed.action.kind;
    if (kind == Kind::forward) {
      use.peak_activations = std::max(use.peak_activations, ++kept);
      use.peak_until_input_grad = std::max(use.peak_until_input_grad, ++kept_until_input_grad);
    }
    if (kind == Kind::backward || kind == Kind::weight_grad) --kept;
    if (kind == Kind::backward || kind == Kind::input_grad) --kept_until_input_grad;
  }
  use.bubble = 1 - use.busy / makespan;
  use.inner_idle = actions.back().end - actions.front().start - use.busy;
  return use;
}

}  // namespace

double ActionCosts::of(PipelineAction::Kind kind) const {
  switch (kind) {
    case Kind::forward:
      return forward;
    case Kind::backward:
      return input_grad + weight_grad;
    case Kind::input_grad:
      return input_grad;
    case Kind::weight_grad:
      return weight_grad;
    default:
      return 0;
  }
}

double PipelineAnalysis::mean_bubble() const {
  double sum = 0;
  for (const RankUse& use : ranks) sum += use.bubble;
  return sum / static_cast<double>(ranks.size());
}

PipelineAnalysis analyze(const PipelinePlan& plan, const ActionCosts& costs) {
  TITAN_CHECK(costs.forward > 0 && costs.input_grad > 0 && costs.weight_grad > 0, config,
              "the costs of F, I and W must be > 0, got ", costs.forward, ", ", costs.input_grad,
              ", ", costs.weight_grad);
  PipelineAnalysis analysis{.shape = plan.shape, .costs = costs, .timeline = {}, .ranks = {}};
  analysis.timeline = Clockwork(plan, costs).run();
  for (const auto& actions : analysis.timeline)
    analysis.makespan = std::max(analysis.makespan, actions.back().end);
  for (const auto& actions : analysis.timeline)
    analysis.ranks.push_back(use_of(actions, analysis.makespan));
  return analysis;
}

}  // namespace titan
