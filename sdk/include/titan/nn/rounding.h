// Stochastic rounding to bfloat16. A weight whose updates are smaller than half of its last bit
// still changes by their sum, in expectation. Used by optimizers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/init.h>

namespace titan::nn {

/// Writes `values` (float32, contiguous, of the slice's sizes) to `out` (bfloat16, the same sizes
/// A value is rounded to the upper of its two bfloat16 neighbours with probability (value - lower)
/// / (upper - lower), in steps of 2^-16, so its expectation is the value. Values that bfloat16
/// represents exactly, infinities and NaN stay unchanged. A value above the largest finite number
/// may become infinite.
///
/// The random numbers are a pure function of (`seed`, `name`, `step`, index in the global tensor),
/// as in nn::fill: Philox4x32-10, key = XXH3(name) mixed with `seed`, counter = (index / 4, step).
/// So a slice of a tensor gets the same bits as in the whole tensor, under any layout and number of
/// threads, and a resumed run gets the same bits as an uninterrupted one. `step` counts from 1.
///
/// Source: Gupta et al., "Deep learning with limited numerical precision", 2015. The random numbers
/// are drawn on the CPU and copied to other devices.
TITAN_API void round_stochastically(const at::Tensor& out, const at::Tensor& values, uint64_t seed,
                                    std::string_view name, int64_t step,
                                    const std::vector<int64_t>& global_shape, const Slice& slice);

}  // namespace titan::nn
