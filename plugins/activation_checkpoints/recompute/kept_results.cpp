#include "kept_results.h"

#include <algorithm>
#include <numeric>

namespace titan::recompute {
namespace {

/// Results of communication, and routing, which is always kept.
bool comes_from_others(const Operation& operation) {
  return operation.kind == Operation::Kind::reduce_scatter ||
         operation.kind == Operation::Kind::all_to_all ||
         operation.kind == Operation::Kind::routing;
}

/// Whether `a` is to be kept before `b`.
bool is_worth_more(const Candidate& a, const Candidate& b) {
  const bool a_travels = comes_from_others(a.operation), b_travels = comes_from_others(b.operation);
  if (a_travels != b_travels) return a_travels;
  return a.operation.flops * static_cast<double>(b.bytes) >
         b.operation.flops * static_cast<double>(a.bytes);
}

}  // namespace

std::vector<std::set<size_t>> choose_within(int64_t budget,
                                            const std::vector<Candidate>& candidates,
                                            size_t num_blocks) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return is_worth_more(candidates[a], candidates[b]); });
  std::vector<std::set<size_t>> places(num_blocks);
  for (const size_t place : order)
    for (size_t block = 0; block < num_blocks && candidates[place].bytes <= budget; ++block) {
      places[block].insert(place);
      budget -= candidates[place].bytes;
    }
  return places;
}

}  // namespace titan::recompute
