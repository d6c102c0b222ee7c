#include "quantize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>

namespace titan::float8 {
namespace {

double largest_of(at::ScalarType format) {
  TITAN_ASSERT(format == at::kFloat8_e4m3fn || format == at::kFloat8_e5m2, "format ", format);
  return format == at::kFloat8_e4m3fn ? 448.0 : 57344.0;
}

}  // namespace

at::Tensor scale_of(const at::Tensor& maximum, at::ScalarType format, ScaleRounding rounding) {
  const at::Tensor bounded = at::clamp_min(maximum.to(at::kDouble), kLeastMaximum);
  const at::Tensor largest = at::full({}, largest_of(format), bounded.options());
  const at::Tensor scale = (largest / bounded).to(at::kFloat);
  if (rounding == ScaleRounding::none) return scale;
  return at::exp2(at::floor(at::log2(scale)));
}

at::Tensor largest_along(const at::Tensor& x, int64_t dim) {
  if (x.numel() == 0 || x.is_meta()) {  // abs has no kernel for meta
    std::vector<int64_t> shape = x.sizes().vec();
    shape[static_cast<size_t>(dim)] = 1;
    return at::zeros(shape, x.options());
  }
  return at::amax(at::abs(x), dim, /*keepdim=*/true);
}

at::Tensor cast(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format) {
  const double largest = largest_of(format);
  return (x.to(at::kFloat) * scale).clamp_(-largest, largest).to(format);
}

at::Tensor dequantize(const Quantized& x) {
  return x.values.to(at::kFloat).div_(x.scale);
}

}  // namespace titan::float8
