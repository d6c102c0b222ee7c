#include "timeline_data.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <titan/shown_text.h>

#include "rounded.h"

namespace titan::commands {
namespace {

/// Unique texts with their indices.
class Texts {
 public:
  int64_t index_of(const std::string& text) {
    const auto [found, is_new] = indices_.try_emplace(text, static_cast<int64_t>(indices_.size()));
    if (is_new) list_.as_list().emplace_back(printable(text));
    return found->second;
  }
  Value take() { return std::move(list_); }

 private:
  std::map<std::string, int64_t> indices_;
  Value list_ = Value::list();
};

const TimelineStep* find_step(const RankTimeline& rank, int64_t step) {
  const auto found =
      std::lower_bound(rank.steps.begin(), rank.steps.end(), step,
                       [](const TimelineStep& one, int64_t number) { return one.step < number; });
  return found != rank.steps.end() && found->step == step ? &*found : nullptr;
}

int64_t count_spans(const std::vector<RankTimeline>& ranks, int64_t step) {
  int64_t count = 0;
  for (const RankTimeline& rank : ranks)
    if (const TimelineStep* found = find_step(rank, step))
      count += static_cast<int64_t>(found->spans.size()) +
               static_cast<int64_t>(rank.plan.actions.size());
  return count;
}

/// Chooses evenly spaced steps within `most_spans`.
std::vector<int64_t> choose(const std::vector<RankTimeline>& ranks, const std::set<int64_t>& steps,
                            int64_t most_spans) {
  const std::vector<int64_t> all(steps.begin(), steps.end());
  int64_t largest = 1;
  for (const int64_t step : all) largest = std::max(largest, count_spans(ranks, step));
  const size_t count = static_cast<size_t>(
      std::clamp<int64_t>(most_spans / largest, 1, static_cast<int64_t>(all.size())));
  if (count == 1) return {all.back()};
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(all[i * (all.size() - 1) / (count - 1)]);
  return chosen;
}

class TimelineWriter {
 public:
  TimelineWriter(const std::vector<RankTimeline>& ranks, int64_t most_spans)
      : ranks_(ranks), most_spans_(most_spans) {}

  Value step(int64_t number) {
    Value rows = Value::list();
    double begin = std::numeric_limits<double>::infinity();
    for (const RankTimeline& rank : ranks_)
      if (const TimelineStep* found = find_step(rank, number))
        begin = std::min(begin, found->begin);
    int64_t count = 0;
    for (const RankTimeline& rank : ranks_) {
      const TimelineStep* found = find_step(rank, number);
      if (!found || (count += static_cast<int64_t>(found->spans.size())) > most_spans_) continue;
      rows.as_list().push_back(Value::map({{"rank", rank.rank},
                                           {"row", rank.plan.rank},
                                           {"spans", spans_of(*found, found->begin - begin)}}));
    }
    return Value::map({{"step", number}, {"ranks", std::move(rows)}, {"plan", plan_of(number)}});
  }
  Value names() { return names_.take(); }
  Value phases() { return phases_.take(); }

 private:
  Value spans_of(const TimelineStep& step, double later) {
    Value spans = Value::list();
    for (const TimelineSpan& span : step.spans)
      spans.as_list().push_back(
          Value::list({phases_.index_of(span.phase), names_.index_of(span.name),
                       microseconds(span.begin + later), microseconds(span.end + later),
                       microseconds(span.waited)}));
    return spans;
  }
  Value plan_of(int64_t number) {
    Value rows = Value::list();
    for (const std::vector<PlannedAction>& row : planned_timeline(ranks_, number)) {
      Value actions = Value::list();
      for (const PlannedAction& action : row)
        actions.as_list().push_back(
            Value::list({phases_.index_of(action.phase), names_.index_of(action.name),
                         microseconds(action.begin), microseconds(action.end)}));
      rows.as_list().push_back(std::move(actions));
    }
    return rows;
  }

  const std::vector<RankTimeline>& ranks_;
  const int64_t most_spans_;
  Texts names_, phases_;
};

}  // namespace

Value timeline_data(const std::vector<RankTimeline>& ranks, int64_t most_spans) {
  std::set<int64_t> steps;
  for (const RankTimeline& rank : ranks)
    for (const TimelineStep& step : rank.steps) steps.insert(step.step);
  if (steps.empty()) return {};
  TimelineWriter writer(ranks, most_spans);
  Value list = Value::list();
  for (const int64_t step : choose(ranks, steps, most_spans))
    list.as_list().push_back(writer.step(step));
  return Value::map({{"names", writer.names()},
                     {"phases", writer.phases()},
                     {"schedule", printable(ranks.front().plan.schedule)},
                     {"num_steps", static_cast<int64_t>(steps.size())},
                     {"num_ranks", static_cast<int64_t>(ranks.size())},
                     {"steps", std::move(list)}});
}

}  // namespace titan::commands
