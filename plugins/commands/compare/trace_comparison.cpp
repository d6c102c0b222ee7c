#include "trace_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <titan/error.h>

namespace titan::commands {
namespace {

using Tensors = std::map<TraceName, std::vector<TracedTensor>>;

/// Whether `a` and `b` differ by at most `tolerance` times `scale`.
bool is_near(double a, double b, double scale, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * scale;
}

bool are_equal(const TracedTensor& a, const TracedTensor& b, double tolerance) {
  if (a.count != b.count || a.num_nan != b.num_nan || a.num_inf != b.num_inf) return false;
  if (tolerance == 0) return a.hash == b.hash && a.dtype == b.dtype;
  const double rms = std::max(a.rms, b.rms);
  const double reach =
      std::max({std::abs(a.min), std::abs(a.max), std::abs(b.min), std::abs(b.max)});
  return is_near(a.mean, b.mean, rms, tolerance) && is_near(a.rms, b.rms, rms, tolerance) &&
         is_near(a.min, b.min, reach, tolerance) && is_near(a.max, b.max, reach, tolerance);
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

/// Adds a piece that does not overlap with earlier ones.
void add_piece(TracedTensor& whole, const TracedTensor& piece) {
  if (piece.count == 0) return;
  if (whole.count == 0) {
    whole = piece;
    if (!piece.of.empty()) whole.shape = piece.of;
    return;
  }
  const auto weight = [](int64_t count) { return static_cast<double>(count); };
  const double n = weight(whole.count), m = weight(piece.count);
  whole.mean = (whole.mean * n + piece.mean * m) / (n + m);
  whole.rms = std::sqrt((whole.rms * whole.rms * n + piece.rms * piece.rms * m) / (n + m));
  whole.min = std::min(whole.min, piece.min);
  whole.max = std::max(whole.max, piece.max);
  whole.num_nan += piece.num_nan;
  whole.num_inf += piece.num_inf;
  whole.hash += piece.hash;
  whole.count += piece.count;
  whole.num_rows += piece.num_rows;
  if (whole.first_row) whole.shape[0] = whole.num_rows;
  whole.key = std::min(whole.key, piece.key);
}

/// A tensor combined from the pieces of several ranks or microbatches.
class Joined {
 public:
  /// False when it overlaps with a different piece.
  bool add(const TracedTensor& piece, const std::string& folder) {
    const auto [place, is_new] =
        pieces_.insert({{piece.offsets, piece.shape, piece.first_row.value_or(-1)}, piece});
    if (is_new) {
      add_piece(whole_, piece);
      return true;
    }
    const TracedTensor& copy = place->second;
    if (copy.hash == piece.hash) return true;
    TITAN_CHECK(piece.offsets.empty(), data, "in '", folder, "' ranks ", copy.rank, " and ",
                piece.rank, " hold different copies of ", words_of(piece),
                ": one of them did not take part in a reduction, or their machines compute "
                "differently");
    return false;
  }
  const TracedTensor& whole() const { return whole_; }
  bool is_complete() const { return whole_.of.empty() || whole_.count == product(whole_.of); }

 private:
  using Place = std::tuple<std::vector<int64_t>, std::vector<int64_t>, int64_t>;
  std::map<Place, TracedTensor> pieces_;
  TracedTensor whole_;
};

/// Combined tensors of all ranks and microbatches. Tensors split other than by rows are omitted and
/// counted.
std::map<TraceName, TracedTensor> joined(const RunRecord& run, int64_t step,
                                         int64_t& num_left_out) {
  std::map<TraceName, Joined> all;
  std::set<TraceName> cut;
  for (const auto& [rank, trace] : run.trace) {
    const auto tensors = trace.steps.find(step);
    if (tensors == trace.steps.end()) continue;
    for (const auto& [name, uses] : tensors->second) {
      const TraceName of_step{0, std::get<1>(name), std::get<2>(name)};
      for (TracedTensor piece : uses) {
        const bool can_be_joined = !piece.offsets.empty() || piece.first_row.has_value();
        std::get<1>(piece.key) = 0;
        if (uses.size() > 1 || !can_be_joined || !all[of_step].add(piece, run.folder))
          cut.insert(of_step);
      }
    }
  }
  std::map<TraceName, TracedTensor> whole;
  for (const auto& [name, pieces] : all)
    if (!cut.contains(name) && pieces.is_complete()) whole[name] = pieces.whole();
  num_left_out += static_cast<int64_t>(cut.size());
  return whole;
}

/// Tensors of one step that both runs have, in the first run's order of computation.
class StepPairs {
 public:
  void add_ranks(const RunRecord& a, const RunRecord& b, int64_t step) {
    for (const auto& [rank, of_a] : a.trace) {
      const auto in_a = of_a.steps.find(step);
      const auto of_b = b.trace.find(rank);
      if (in_a == of_a.steps.end() || of_b == b.trace.end()) continue;
      const auto in_b = of_b->second.steps.find(step);
      if (in_b != of_b->second.steps.end()) add(in_a->second, in_b->second);
    }
  }
  void add_sums(const RunRecord& a, const RunRecord& b, int64_t step) {
    const auto of_a = joined(a, step, num_unmatched), of_b = joined(b, step, num_unmatched);
    for (const auto& [name, tensor] : of_a) {
      const auto other = of_b.find(name);
      // split differently, or other rows of the batch
      if (other == of_b.end() || other->second.count != tensor.count ||
          other->second.num_rows != tensor.num_rows)
        ++num_unmatched;
      else
        pairs.push_back({tensor, other->second});
    }
  }
  void sort() {
    std::stable_sort(pairs.begin(), pairs.end(), [](const TensorPair& a, const TensorPair& b) {
      return std::pair(a.first.key, a.first.rank) < std::pair(b.first.key, b.first.rank);
    });
  }

  std::vector<TensorPair> pairs;
  int64_t num_unmatched = 0;

 private:
  void add(const Tensors& a, const Tensors& b) {
    for (const auto& [name, uses] : a) {
      const auto others = b.find(name);
      const size_t num_others = others == b.end() ? 0 : others->second.size();
      for (size_t i = 0; i < std::min(uses.size(), num_others); ++i)
        pairs.push_back({uses[i], others->second[i]});
      num_unmatched +=
          std::abs(static_cast<int64_t>(uses.size()) - static_cast<int64_t>(num_others));
    }
    for (const auto& [name, uses] : b)
      if (!a.contains(name)) num_unmatched += static_cast<int64_t>(uses.size());
  }
};

std::set<int64_t> steps_of(const RunRecord& run) {
  std::set<int64_t> steps;
  for (const auto& [rank, trace] : run.trace)
    for (const auto& [step, tensors] : trace.steps) steps.insert(step);
  return steps;
}

bool have_equal_layouts(const RunRecord& a, const RunRecord& b) {
  return std::equal(a.trace.begin(), a.trace.end(), b.trace.begin(), b.trace.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.axes == y.second.axes;
                    });
}

void compare_step(const StepPairs& step, double tolerance, TraceComparison& result) {
  result.num_tensors = static_cast<int64_t>(step.pairs.size());
  result.num_unmatched = step.num_unmatched;
  result.before.reset();
  for (const TensorPair& pair : step.pairs) {
    if (are_equal(pair.first, pair.second, tolerance)) {
      if (!result.parts_at) result.before = pair.first;
      continue;
    }
    ++result.num_different;
    if (!result.parts_at) result.parts_at = pair;
  }
}

}  // namespace

std::string words_of(const TracedTensor& tensor) {
  if (tensor.kind == "parameter") return "the weight " + tensor.name;
  if (tensor.kind == "gradient") return "the gradient of the weight " + tensor.name;
  if (tensor.kind == "gradient of one microbatch")
    return "the gradient of the weight " + tensor.name + " in one microbatch";
  return "the " + (tensor.kind == "gradient of output" ? "gradient of the output" : tensor.kind) +
         " of " + tensor.name;
}

TraceComparison compare_traces(const RunRecord& a, const RunRecord& b, double tolerance) {
  TraceComparison result{.by_rank = have_equal_layouts(a, b)};
  const std::set<int64_t> of_a = steps_of(a), of_b = steps_of(b);
  std::vector<int64_t> common;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::back_inserter(common));
  result.num_steps = static_cast<int64_t>(common.size());
  for (const int64_t number : common) {
    StepPairs step;
    if (result.by_rank)
      step.add_ranks(a, b, number);
    else
      step.add_sums(a, b, number);
    step.sort();
    result.last_step = number;
    compare_step(step, tolerance, result);
    if (result.parts_at) break;
  }
  return result;
}

}  // namespace titan::commands
