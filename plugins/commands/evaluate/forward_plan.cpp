#include "forward_plan.h"

#include <algorithm>
#include <utility>

namespace titan::evaluation {
namespace {

/// Input of the network for one or more requests: all tokens of a request but the last.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<SequencePiece::Asked> asked;  // places within the whole sequence
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

std::vector<Sequence> sequences_of(const std::vector<Request>& requests) {
  std::vector<Sequence> all;
  for (size_t number = 0; number < requests.size(); ++number) {
    const Request& request = requests[number];
    Sequence& sequence = all.emplace_back();
    sequence.ids = request.context;
    sequence.ids.insert(sequence.ids.end(), request.target.begin(), request.target.end());
    sequence.ids.pop_back();
    for (size_t i = 0; i < request.target.size(); ++i)
      sequence.asked.push_back(
          {.request = number, .place = request.context.size() - 1 + i, .id = request.target[i]});
  }
  std::stable_sort(all.begin(), all.end(), [](const Sequence& a, const Sequence& b) {
    return a.ids.size() != b.ids.size() ? a.ids.size() > b.ids.size() : a.ids < b.ids;
  });
  std::vector<Sequence> distinct;
  for (Sequence& sequence : all) {
    if (distinct.empty() || distinct.back().ids != sequence.ids)
      distinct.push_back(std::move(sequence));
    else
      distinct.back().asked.insert(distinct.back().asked.end(), sequence.asked.begin(),
                                   sequence.asked.end());
  }
  for (Sequence& sequence : distinct)
    std::stable_sort(sequence.asked.begin(), sequence.asked.end(),
                     [](const auto& a, const auto& b) { return a.place < b.place; });
  return distinct;
}

/// Splits a batch into forwards within the limits of tokens and rows.
std::vector<PlannedForward> cut(const std::vector<Sequence>& batch, const PlanLimits& limits) {
  PlannedForward empty;
  empty.num_slots = static_cast<int64_t>(batch.size());
  empty.capacity = batch.front().size();
  std::vector<PlannedForward> forwards = {empty};
  int64_t tokens = 0, rows = 0;
  for (int64_t slot = 0; slot < empty.num_slots; ++slot) {
    const Sequence& sequence = batch[static_cast<size_t>(slot)];
    auto asked = sequence.asked.begin();
    SequencePiece* piece = nullptr;
    for (int64_t place = 0; place < sequence.size(); ++place) {
      const bool is_asked =
          asked != sequence.asked.end() && static_cast<int64_t>(asked->place) == place;
      if (tokens == limits.tokens || (is_asked && rows == limits.rows)) {
        forwards.push_back(empty);
        forwards.back().begins_batch = false;
        tokens = rows = 0;
        piece = nullptr;
      }
      if (!piece)
        piece = &forwards.back().pieces.emplace_back(
            SequencePiece{.slot = slot, .start = place, .ids = {}, .asked = {}});
      for (; asked != sequence.asked.end() && static_cast<int64_t>(asked->place) == place; ++asked)
        piece->asked.push_back(
            {.request = asked->request, .place = piece->ids.size(), .id = asked->id});
      piece->ids.push_back(sequence.ids[static_cast<size_t>(place)]);
      ++tokens;
      rows += is_asked ? 1 : 0;
    }
  }
  return forwards;
}

}  // namespace

int64_t PlannedForward::num_tokens() const {
  int64_t count = 0;
  for (const SequencePiece& piece : pieces) count += static_cast<int64_t>(piece.ids.size());
  return count;
}

int64_t PlannedForward::num_rows() const {
  int64_t count = 0;
  for (const SequencePiece& piece : pieces)
    for (size_t i = 0; i < piece.asked.size(); ++i)
      count += i == 0 || piece.asked[i].place != piece.asked[i - 1].place ? 1 : 0;
  return count;
}

std::vector<std::vector<PlannedForward>> plan_forwards(const std::vector<Request>& requests,
                                                       const PlanLimits& limits) {
  std::vector<std::vector<PlannedForward>> ranks(static_cast<size_t>(limits.num_ranks));
  std::vector<Sequence> batch;
  int64_t tokens = 0;
  const auto close = [&] {
    if (batch.empty()) return;
    // to the rank with the fewest forwards; every rank computes the same plan
    auto rank = std::min_element(ranks.begin(), ranks.end(),
                                 [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (PlannedForward& forward : cut(batch, limits)) rank->push_back(std::move(forward));
    batch.clear();
    tokens = 0;
  };
  for (Sequence& sequence : sequences_of(requests)) {
    if (tokens + sequence.size() > limits.tokens) close();
    tokens += sequence.size();
    batch.push_back(std::move(sequence));
  }
  close();
  size_t most = 0;
  for (const auto& rank : ranks) most = std::max(most, rank.size());
  PlannedForward idle;
  idle.pieces.push_back({.slot = 0, .start = 0, .ids = {0}, .asked = {}});
  for (auto& rank : ranks) rank.resize(most, idle);
  return ranks;
}

}  // namespace titan::evaluation
