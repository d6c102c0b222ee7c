#include "round_trip.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#include "../common/float8_values.h"

namespace titan::float8 {
namespace {

template <class Format>
constexpr float kLargest = 448;
template <>
constexpr float kLargest<c10::Float8_e5m2> = 57344;

/// Strided view of a scalar, a row or a column of scales.
struct Scales {
  const float* data;
  int64_t row_stride, column_stride;
};

template <class Wide, class Format>
void run(const Wide* x, const Scales& scales, float* out, int64_t rows, int64_t columns) {
  const std::array<float, 256>& values = quantized::values_of_bytes<Format>();
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns));
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const float scale = scales.data[row * scales.row_stride + column * scales.column_stride];
        float scaled = static_cast<float>(x[row * columns + column]) * scale;
        // NaN passes both comparisons
        scaled = scaled > kLargest<Format> ? kLargest<Format> : scaled;
        scaled = scaled < -kLargest<Format> ? -kLargest<Format> : scaled;
        out[row * columns + column] = values[Format(scaled).x] / scale;
      }
  });
}

template <class Wide>
void run(const at::Tensor& x, const Scales& scales, at::ScalarType format, const at::Tensor& out) {
  const auto* from = x.const_data_ptr<Wide>();
  auto* to = out.mutable_data_ptr<float>();
  if (format == at::kFloat8_e4m3fn)
    run<Wide, c10::Float8_e4m3fn>(from, scales, to, x.size(0), x.size(1));
  else
    run<Wide, c10::Float8_e5m2>(from, scales, to, x.size(0), x.size(1));
}

}  // namespace

at::Tensor round_trip(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format) {
  const bool is_wide = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  if (x.is_meta()) return at::empty(x.sizes(), x.options().dtype(at::kFloat));
  if (!x.is_cpu() || x.dim() != 2 || !is_wide) return dequantize({cast(x, scale, format), scale});
  const at::Tensor whole = x.contiguous(), each = scale.expand(x.sizes());
  const Scales scales{each.const_data_ptr<float>(), each.stride(0), each.stride(1)};
  at::Tensor out = at::empty(x.sizes(), x.options().dtype(at::kFloat));
  if (x.scalar_type() == at::kFloat)
    run<float>(whole, scales, format, out);
  else
    run<c10::BFloat16>(whole, scales, format, out);
  return out;
}

}  // namespace titan::float8
