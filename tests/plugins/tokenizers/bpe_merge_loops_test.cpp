// The two loops that merge pairs, compared with their definition: the leftmost pair of the lowest
// rank, until no pair has one. The referee compares whole tokenizers.
#include "plugins/tokenizers/common/merge_loops.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace titan::bpe {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kLetters = 3;

/// Merge rules over three letters and their results, as in a trained model: a later token consists
/// of earlier ones. `shuffles`: ranks in an order that no training produces.
std::vector<MergeRule> draw_rules(std::mt19937& random, bool shuffles) {
  std::vector<MergeRule> rules;
  std::map<std::pair<int32_t, int32_t>, bool> is_taken;
  for (int32_t id = kLetters; id < kLetters + 40; ++id) {
    const auto left = static_cast<int32_t>(random() % static_cast<uint32_t>(id));
    const auto right = static_cast<int32_t>(random() % static_cast<uint32_t>(id));
    if (std::exchange(is_taken[{left, right}], true)) continue;
    rules.push_back({left, right, {static_cast<uint32_t>(rules.size()), id}});
  }
  if (!shuffles) return rules;
  std::vector<uint32_t> ranks;
  for (const MergeRule& rule : rules) ranks.push_back(rule.merge.rank);
  std::shuffle(ranks.begin(), ranks.end(), random);
  for (size_t i = 0; i < rules.size(); ++i) rules[i].merge.rank = ranks[i];
  return rules;
}

Ids merged_by_definition(const MergeTable& merges, Ids ids) {
  while (true) {
    Merge best;
    size_t place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merge merge = merges.find(ids[i], ids[i + 1]);
      if (merge.rank >= best.rank) continue;
      best = merge;
      place = i;
    }
    if (best.rank == Merge::kNone) return ids;
    ids[place] = best.id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
}

Ids merged_by_heap(const MergeTable& merges, Ids ids) {
  std::vector<uint32_t> ranks, previous, next;
  std::vector<uint64_t> heap;
  merge_by_heap(merges, ids, {ranks, previous, next, heap});
  return ids;
}

TEST(MergeLoops, TakeTheLeftmostPairOfTheLowestRankEachTime) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const MergeTable merges(draw_rules(random, round % 2 == 1));
    Ids ids(1 + random() % 150);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % kLetters);
    const Ids expected = merged_by_definition(merges, ids);
    EXPECT_EQ(merged_by_heap(merges, ids), expected);
    if (ids.size() > kMaxScan) continue;
    merge_by_scan(merges, ids);
    EXPECT_EQ(ids, expected);
  }
}

}  // namespace
}  // namespace titan::bpe
