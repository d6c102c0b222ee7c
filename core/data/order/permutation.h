// Pseudorandom permutations that need no memory. Used for shuffling.
#pragma once

#include <cstdint>
#include <string_view>

namespace titan::core {

/// A hash of two numbers: every bit of the result depends on every bit of both.
uint64_t mix(uint64_t a, uint64_t b);
/// A hash of a number and a name.
uint64_t mix(uint64_t a, std::string_view name);

/// A bijection of 0 ... size-1 onto itself that is chosen by `key`: a Feistel network over the next
/// power of four, walked until it comes out below `size` (Black and Rogaway, 2002). Any element
/// costs the same few operations, so a position in a shuffled epoch is one integer.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key);

  /// `index` < size.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t size_;
  uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace titan::core
