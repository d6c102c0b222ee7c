#include "core/data/order/permutation.h"

#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace titan::core {
namespace {

constexpr int kRounds = 6;

/// Steele, Lea and Flood, 2014 (SplitMix64): its finaliser.
uint64_t finalize(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t mix(uint64_t a, uint64_t b) {
  return finalize(finalize(a + 0x9E3779B97F4A7C15) ^ (b + 0xD1B54A32D192ED03));
}

uint64_t mix(uint64_t a, std::string_view name) {
  return mix(a, XXH3_64bits(name.data(), name.size()));
}

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size), key_(key) {
  const int bits = size > 1 ? std::bit_width(size - 1) : 1;
  half_bits_ = (bits + 1) / 2;
}

uint64_t Permutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (finalize(key_ + right + (uint64_t(round) << 56)) & mask);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= size_);
  return index;
}

}  // namespace titan::core
