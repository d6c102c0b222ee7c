// Initial values as a pure function of (seed, parameter name, global element index). Each rank
// fills only its slice, and the result is bitwise that of the unsharded tensor, under any layout
// and any number of threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::nn {

/// A rule for the initial values of one parameter.
struct Init {
  enum class Kind { constant, normal, truncated_normal };
  Kind kind = Kind::constant;
  double mean = 0;  ///< of the constant: its value
  double std = 0;
  double lower = 0;  ///< absolute bounds of the truncated normal
  double upper = 0;

  static Init constant(double value) { return {Kind::constant, value}; }
  static Init normal(double mean, double std) { return {Kind::normal, mean, std}; }
  /// torch.nn.init.trunc_normal_: the bounds are absolute, so std 0.02 with the default bounds is
  /// practically a plain normal.
  static Init truncated_normal(double mean, double std, double lower = -2, double upper = 2) {
    return {Kind::truncated_normal, mean, std, lower, upper};
  }
};

/// A rectangle of a global tensor.
struct TITAN_API Slice {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
  int64_t num_elements() const;
};

/// Fills `out` with the initial values of `slice` of a tensor `name` of `global_shape`. `out` is
/// contiguous and has the slice's sizes; values are computed on the CPU and copied to its device.
///
/// Source of randomness: Philox4x32-10 (Salmon et al., 2011), key = XXH3(name) mixed with `seed`,
/// counter = element index / 4. Normal values come from the inverse of the normal distribution's
/// CDF (Giles, 2010), computed in double, rounded to fp32, then to the dtype of `out`.
TITAN_API void fill(at::Tensor& out, const Init& init, uint64_t seed, std::string_view name,
                    const std::vector<int64_t>& global_shape, const Slice& slice);

}  // namespace titan::nn
