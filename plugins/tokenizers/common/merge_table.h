// Maps a pair of neighbouring ids to its merge: the inner loop of BPE. Used by Engine and IdWriter.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace titan::bpe {

struct Merge {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t rank = kNone;  ///< lower merges first
  int32_t id = -1;        ///< of the merged pair
};

/// Two neighbours that become one token.
struct MergeRule {
  int32_t left;
  int32_t right;
  Merge merge;
};

/// Open addressing, at most half full. Immutable after construction.
class MergeTable {
 public:
  /// Of two rules for one pair the later one counts.
  explicit MergeTable(std::span<const MergeRule> rules) {
    while ((size_t{1} << log_size_) < 2 * rules.size()) ++log_size_;
    slots_.resize(size_t{1} << log_size_);
    for (const MergeRule& rule : rules) {
      slots_[slot_of(rule.left, rule.right)] = {key(rule.left, rule.right), rule.merge};
    }
  }

  Merge find(int32_t left, int32_t right) const { return slots_[slot_of(left, right)].merge; }

 private:
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };
  static constexpr uint64_t kFree = std::numeric_limits<uint64_t>::max();

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // The pair's slot, or the free one where it would be put.
  size_t slot_of(int32_t left, int32_t right) const {
    const uint64_t wanted = key(left, right);
    const size_t mask = slots_.size() - 1;
    size_t slot = static_cast<size_t>(wanted * 0x9E3779B97F4A7C15u >> (64 - log_size_));
    while (slots_[slot].key != wanted && slots_[slot].key != kFree) slot = (slot + 1) & mask;
    return slot;
  }

  int log_size_ = 4;
  std::vector<Slot> slots_;
};

}  // namespace titan::bpe
