#include "blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>

#include "../common/float8_values.h"

namespace titan::mx {
namespace {

using at::Tensor;

constexpr double kLargest = 448;  // of e4m3
constexpr int64_t kLargestExponent = 8, kBias = 127, kNotANumber = 255, kInfinite = 254;
constexpr int64_t kMantissaBits = 23;  // of fp32
constexpr float kLeastNormal = std::numeric_limits<float>::min();

/// Per block: the byte of its power of two, and the factor from its values to e4m3, which is 1 /
/// power except at the ends of the range.
struct Scales {
  Tensor bytes, factors;
};

/// `maximum`: fp32, (rows, blocks).
Scales scale_by_floor(const Tensor& maximum) {
  const Tensor exponent =
      at::bitwise_right_shift(maximum.view(at::kInt), kMantissaBits).bitwise_and(255) - kBias;
  Tensor scales = at::clamp(exponent - kLargestExponent, -kBias, kBias + 1) + kBias;
  scales = at::where(at::isnan(maximum), at::full_like(scales, kNotANumber), scales);
  // 2^-127 is subnormal: a block that small is divided by 2^-126
  const Tensor power =
      at::clamp_min(at::bitwise_left_shift(scales, kMantissaBits).view(at::kFloat), kLeastNormal);
  return {scales.to(at::kByte), power.reciprocal()};
}

Scales scale_by_rceil(const Tensor& maximum) {
  const Tensor ratio = maximum / kLargest;
  const Tensor exponent = at::clamp(at::ceil(at::log2(ratio)), -kBias, kBias) + kBias;
  const auto all = [&](double value) { return at::full_like(ratio, value); };
  const Tensor scales = at::where(at::isnan(ratio), all(kNotANumber),
                                  at::where(at::isinf(ratio), all(kInfinite), exponent));
  Tensor factors = at::exp2(kBias - scales);
  factors = at::where(scales.eq(0), all(1), factors);
  factors = at::where(scales.eq(kInfinite), all(std::ldexp(1.0, -kBias)), factors);
  factors = at::where(scales.eq(kNotANumber), ratio, factors);
  return {scales.to(at::kByte), factors};
}

Scales scale(const Tensor& maximum, Rounding rounding) {
  return rounding == Rounding::floor ? scale_by_floor(maximum) : scale_by_rceil(maximum);
}

/// Row-major, with rows padded with zeros to a multiple of 32.
Tensor in_whole_blocks(const Tensor& x) {
  const int64_t missing = (kBlock - x.size(1) % kBlock) % kBlock;
  return missing == 0 ? x.contiguous() : at::constant_pad_nd(x, {0, missing}, 0).contiguous();
}

/// The powers of two of e8m0 bytes, fp32.
Tensor powers(const Tensor& bytes) {
  const Tensor exponent = bytes.to(at::kShort) - kBias;
  const Tensor two = at::full_like(exponent, 2, exponent.options().dtype(at::kFloat));
  const Tensor power = at::pow(two, exponent);
  const Tensor undefined = at::full_like(power, std::numeric_limits<double>::quiet_NaN());
  return at::where(bytes.eq(kNotANumber), undefined, power);
}

template <class Wide>
void largest_of_blocks(const Wide* x, float* maxima, int64_t num_blocks) {
  at::parallel_for(0, num_blocks, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      // without the sign, larger values have larger bits; NaN has the largest
      uint32_t largest = 0;
      for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i)
        largest = std::max(largest, std::bit_cast<uint32_t>(static_cast<float>(x[i])) & 0x7fffffff);
      maxima[block] = std::bit_cast<float>(largest);
    }
  });
}

template <class Wide>
void narrow_blocks(const Wide* x, const float* factors, const float* powers, Wide* out,
                   int64_t num_blocks) {
  const std::array<float, 256>& values = quantized::values_of_bytes<c10::Float8_e4m3fn>();
  constexpr float kLimit = kLargest;
  at::parallel_for(0, num_blocks, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const float factor = factors[block], power = powers[block];
      for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
        float scaled = static_cast<float>(x[i]) * factor;
        scaled = scaled > kLimit ? kLimit : scaled;  // NaN passes both comparisons
        scaled = scaled < -kLimit ? -kLimit : scaled;
        out[i] = static_cast<Wide>(values[c10::Float8_e4m3fn(scaled).x] * power);
      }
    }
  });
}

/// As dequantize(quantize(x)) in x's dtype, in two passes. `x`: whole blocks, on the CPU.
template <class Wide>
Tensor round_trip_on_cpu(const Tensor& x, Rounding rounding) {
  const int64_t num_blocks = x.numel() / kBlock;
  const Tensor maxima = at::empty({x.size(0), x.size(1) / kBlock}, x.options().dtype(at::kFloat));
  largest_of_blocks(x.const_data_ptr<Wide>(), maxima.mutable_data_ptr<float>(), num_blocks);
  const Scales scales = scale(maxima, rounding);
  const Tensor factors = scales.factors.contiguous(), power = powers(scales.bytes).contiguous();
  Tensor out = at::empty_like(x);
  narrow_blocks(x.const_data_ptr<Wide>(), factors.const_data_ptr<float>(),
                power.const_data_ptr<float>(), out.mutable_data_ptr<Wide>(), num_blocks);
  return out;
}

}  // namespace

Blocks quantize(const Tensor& x, Rounding rounding) {
  const Tensor whole = in_whole_blocks(x);
  const int64_t rows = whole.size(0), k = whole.size(1);
  if (x.is_meta())  // abs has no kernel for it
    return {at::empty({rows, k}, x.options().dtype(at::kFloat8_e4m3fn)),
            at::empty({rows, k / kBlock}, x.options().dtype(at::kByte))};
  const Tensor blocks = whole.view({rows, k / kBlock, kBlock});
  const Scales scales = scale(at::amax(at::abs(blocks), -1).to(at::kFloat), rounding);
  const Tensor scaled = blocks.to(at::kFloat) * scales.factors.unsqueeze(-1);
  return {at::clamp(scaled, -kLargest, kLargest).to(at::kFloat8_e4m3fn).view({rows, k}),
          scales.bytes};
}

Tensor dequantize(const Blocks& x, at::ScalarType dtype) {
  const int64_t rows = x.values.size(0), k = x.values.size(1);
  const Tensor blocks = x.values.to(dtype).view({rows, k / kBlock, kBlock});
  return (blocks * powers(x.scales).to(dtype).unsqueeze(-1)).view({rows, k});
}

Tensor round_trip(const Tensor& x, Rounding rounding) {
  const at::ScalarType dtype = x.scalar_type();
  if (x.is_cpu() && dtype == at::kFloat)
    return round_trip_on_cpu<float>(in_whole_blocks(x), rounding);
  if (x.is_cpu() && dtype == at::kBFloat16)
    return round_trip_on_cpu<c10::BFloat16>(in_whole_blocks(x), rounding);
  if (x.is_meta()) return at::empty_like(in_whole_blocks(x));
  return dequantize(quantize(x, rounding), dtype);
}

}  // namespace titan::mx
