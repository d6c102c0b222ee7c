// The key of the random numbers that round a weight. Used by rounding.cpp and ops/adamw_steps.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include <xxhash.h>

namespace titan::nn {

inline uint64_t rounding_key(uint64_t seed, std::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

}  // namespace titan::nn
