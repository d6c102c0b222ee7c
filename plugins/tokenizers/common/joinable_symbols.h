// Which symbols can be adjacent inside a token. Used by Engine to cut long texts where no merge can
// cross the cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "merge_table.h"
#include "symbol_table.h"

namespace titan::bpe {

/// Immutable after construction. Because of hashing it may return true for pairs that never join,
/// but never false for pairs that do.
class JoinableSymbols {
 public:
  /// Unless every token begins and ends with the same symbols in all its merges, all pairs count as
  /// joinable.
  JoinableSymbols(const SymbolTable& symbols, std::span<const MergeRule> rules);

  bool operator()(int32_t left, int32_t right) const {
    const size_t bit = bit_of(left, right);
    return (bits_[bit / 64] >> (bit % 64) & 1) != 0;
  }

 private:
  static constexpr int kLogBits = 18;  // 32 KiB: fits into the L1 cache

  static size_t bit_of(int32_t left, int32_t right) {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    return static_cast<size_t>(key * 0x9E3779B97F4A7C15u >> (64 - kLogBits));
  }

  std::vector<uint64_t> bits_;
};

}  // namespace titan::bpe
