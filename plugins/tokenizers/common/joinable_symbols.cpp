#include "joinable_symbols.h"

#include <algorithm>
#include <limits>

namespace titan::bpe {
namespace {

constexpr int32_t kUnknown = -1;

// The symbols that each token begins and ends with.
struct Edges {
  std::vector<int32_t> first;
  std::vector<int32_t> last;

  Edges(const SymbolTable& symbols, std::span<const MergeRule> rules) {
    int32_t largest = -1;
    for (int32_t id : symbols.ids()) largest = std::max(largest, id);
    for (const MergeRule& rule : rules) {
      largest = std::max({largest, rule.left, rule.right, rule.merge.id});
    }
    first.assign(static_cast<size_t>(largest) + 1, kUnknown);
    last = first;
    for (int32_t id : symbols.ids()) {
      first[static_cast<size_t>(id)] = last[static_cast<size_t>(id)] = id;
    }
  }

  int32_t first_of(int32_t id) const { return first[static_cast<size_t>(id)]; }
  int32_t last_of(int32_t id) const { return last[static_cast<size_t>(id)]; }

  // Repeats all rules until nothing changes. False: two merges of one token disagree, or the order
  // of the rules needs too many rounds.
  bool follow(std::span<const MergeRule> rules) {
    constexpr int kMaxRounds = 16;
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = false;
      for (const MergeRule& rule : rules) {
        const int32_t begin = first_of(rule.left);
        const int32_t end = last_of(rule.right);
        if (begin == kUnknown || end == kUnknown) continue;
        int32_t& known_begin = first[static_cast<size_t>(rule.merge.id)];
        int32_t& known_end = last[static_cast<size_t>(rule.merge.id)];
        if (known_begin == kUnknown) {
          known_begin = begin;
          known_end = end;
          changed = true;
        } else if (known_begin != begin || known_end != end) {
          return false;
        }
      }
      if (!changed) return true;
    }
    return false;
  }
};

}  // namespace

JoinableSymbols::JoinableSymbols(const SymbolTable& symbols, std::span<const MergeRule> rules)
    : bits_((size_t{1} << kLogBits) / 64, 0) {
  Edges edges(symbols, rules);
  if (!edges.follow(rules)) {
    std::fill(bits_.begin(), bits_.end(), std::numeric_limits<uint64_t>::max());
    return;
  }
  for (const MergeRule& rule : rules) {
    const int32_t left = edges.last_of(rule.left);
    const int32_t right = edges.first_of(rule.right);
    if (left == kUnknown || right == kUnknown) continue;
    const size_t bit = bit_of(left, right);
    bits_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

}  // namespace titan::bpe
