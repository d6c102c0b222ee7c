// Rounding to bfloat16 at random, in proportion to the distance: a weight that changes by less than
// half of its last bit in each step still arrives where it should, on average. Used by optimizers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/init.h>

namespace titan::nn {

/// Writes `values` (float32, contiguous, of the slice's sizes) to `out` (bfloat16, the same sizes
/// and device). Of its two neighbours in bfloat16 a value becomes the upper one with the
/// probability (value - lower) / (upper - lower), in steps of 2^-16: its expectation is the value.
/// What bfloat16 holds exactly, infinities and NaN stay what they are; a value above the largest
/// number may become infinite.
///
/// The random numbers are a pure function of (`seed`, `name`, `step`, index in the global tensor),
/// as nn::fill: Philox4x32-10, key = XXH3(name) mixed with `seed`, counter = (index / 4, step). So
/// a slice of a tensor gets the bits that the whole would, under any layout and number of threads,
/// and a resumed run goes on as if it had not stopped. `step` counts from 1.
///
/// Source: Gupta et al., "Deep learning with limited numerical precision", 2015. The random numbers
/// are drawn on the CPU; on another device they are copied there first.
TITAN_API void round_stochastically(const at::Tensor& out, const at::Tensor& values, uint64_t seed,
                                    std::string_view name, int64_t step,
                                    const std::vector<int64_t>& global_shape, const Slice& slice);

}  // namespace titan::nn
