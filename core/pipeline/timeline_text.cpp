// See timeline.h.
#include <algorithm>
#include <cmath>

#include <titan/error.h>

#include "core/pipeline/timeline.h"

namespace titan::core {
namespace {

/// Columns of one action of the shortest kind: its label and a space.
size_t narrowest_columns(const PipelineAnalysis& analysis) {
  size_t longest = 0;
  for (const auto& actions : analysis.timeline)
    for (const TimedAction& timed : actions)
      longest = std::max(longest, to_string(timed.action).size());
  return longest + 1;
}

double shortest(const ActionCosts& costs) {
  return std::min({costs.forward, costs.input_grad, costs.weight_grad});
}

class Rows {
 public:
  explicit Rows(const PipelineAnalysis& analysis)
      : cell_(narrowest_columns(analysis)),
        columns_per_time_(static_cast<double>(cell_) / shortest(analysis.costs)),
        length_(column(analysis.makespan)) {
    for (const auto& actions : analysis.timeline) rows_.push_back(row(actions));
  }

  std::string blocks(size_t width) const {
    const std::string widest = "rank " + std::to_string(rows_.size() - 1);
    const size_t label = widest.size() + 2;
    const size_t room = width > label + cell_ ? (width - label) / cell_ * cell_ : cell_;
    std::string text;
    for (size_t begin = 0; begin < length_; begin += room) {
      if (begin > 0) text += "\n";
      for (size_t rank = 0; rank < rows_.size(); ++rank) {
        std::string line = "rank " + std::to_string(rank);
        line.resize(label, ' ');
        line += rows_[rank].substr(begin, room);
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      }
    }
    return text;
  }

 private:
  size_t column(double time) const {
    return static_cast<size_t>(std::lround(time * columns_per_time_));
  }

  std::string row(const std::vector<TimedAction>& actions) const {
    std::string cells(length_, ' ');
    for (size_t at = 0; at < length_; at += cell_) cells[at] = '.';
    for (const TimedAction& timed : actions) {
      const size_t begin = column(timed.start), end = column(timed.end);
      const std::string label = to_string(timed.action);
      std::fill(cells.begin() + static_cast<ptrdiff_t>(begin),
                cells.begin() + static_cast<ptrdiff_t>(end), '-');
      cells.replace(begin, label.size(), label);
      cells[end - 1] = timed.action.overlaps_next ? '+' : ' ';
      // no wider than its label: no dashes after the label
      if (end - begin <= cell_)
        std::fill(cells.begin() + static_cast<ptrdiff_t>(begin + label.size()),
                  cells.begin() + static_cast<ptrdiff_t>(end - 1), ' ');
    }
    return cells;
  }

  size_t cell_;
  double columns_per_time_;
  size_t length_;
  std::vector<std::string> rows_;
};

}  // namespace

std::string timeline_text(const PipelineAnalysis& analysis, size_t width) {
  return Rows(analysis).blocks(width);
}

}  // namespace titan::core
