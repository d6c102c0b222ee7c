// The rounding of a matrix to float8 and MXFP8, written in plain operations as a reference. Used by
// the tests of products.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/zeros.h>

#include "plugins/converters/mx/blocks.h"

namespace titan::quantized_test {

/// x rounded to float8 with one scale, or one for each line along `dim`; returned in fp32.
inline at::Tensor narrowed(const at::Tensor& x, std::optional<int64_t> dim, bool is_power,
                           double largest = 448) {
  at::Tensor maximum = x.detach().to(at::kDouble).abs();
  maximum = dim ? maximum.amax(*dim, true) : maximum.max();
  at::Tensor scale = (largest / maximum.clamp_min(1e-12)).to(at::kFloat);
  if (is_power) scale = at::exp2(scale.to(at::kDouble).log2().floor()).to(at::kFloat);
  const at::Tensor cut = (x.detach().to(at::kFloat) * scale).clamp(-largest, largest);
  return cut.to(largest == 448 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2).to(at::kFloat) / scale;
}

/// The scale of one block, by the text of the specification.
inline int exponent_of(float maximum, mx::Rounding rounding) {
  if (maximum == 0) return -127;
  const double exact = rounding == mx::Rounding::floor
                           ? std::floor(std::log2(double{maximum})) - 8
                           : std::ceil(std::log2(double{maximum} / 448));
  return static_cast<int>(std::max(-127.0, std::min(127.0, exact)));
}

/// x rounded in blocks along its rows, padded with zeros; returned in fp32.
inline at::Tensor narrowed(const at::Tensor& x, mx::Rounding rounding) {
  const at::Tensor wide = x.detach().to(at::kFloat).contiguous();
  const int64_t missing = (32 - wide.size(1) % 32) % 32;
  const at::Tensor whole = at::cat({wide, at::zeros({wide.size(0), missing})}, 1);
  at::Tensor result = whole.clone();
  for (int64_t row = 0; row < whole.size(0); ++row)
    for (int64_t begin = 0; begin < whole.size(1); begin += 32) {
      at::Tensor block = result[row].narrow(0, begin, 32);
      const int exponent = exponent_of(block.abs().max().item<float>(), rounding);
      const double power = std::ldexp(1.0, exponent);
      block.copy_((block / power).clamp(-448, 448).to(at::kFloat8_e4m3fn).to(at::kFloat) * power);
    }
  return result;
}

}  // namespace titan::quantized_test
