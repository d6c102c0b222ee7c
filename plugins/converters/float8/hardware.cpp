#include "hardware.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

namespace titan::float8 {
namespace {

constexpr int64_t kMultiple = 16;  // required by the matrix units

int64_t missing(int64_t size) {
  return (kMultiple - size % kMultiple) % kMultiple;
}

/// A row-major matrix with `rows` and `columns` of zeros appended.
at::Tensor fill_up(const at::Tensor& values, int64_t rows, int64_t columns) {
  if (rows == 0 && columns == 0) return values.contiguous();
  const at::Tensor bytes = values.contiguous().view(at::kByte);
  return at::constant_pad_nd(bytes, {0, columns, 0, rows}, 0).view(values.scalar_type());
}

at::Tensor first_columns(const at::Tensor& matrix, int64_t n) {
  return matrix.size(1) == n ? matrix : matrix.narrow(1, 0, n).contiguous();
}

/// Whether the device can scale rows of bfloat16 results with full-precision accumulation: tried
/// with a small product.
bool scales_rows_in_full(const at::Tensor& like) {
  if (like.is_cpu()) return false;
  static const bool holds = [&] {
    try {
      const at::TensorOptions options = like.options();
      const at::Tensor values =
          at::zeros({64, 64}, options.dtype(at::kByte)).view(at::kFloat8_e4m3fn);
      const at::Tensor scale = at::ones({64, 1}, options.dtype(at::kFloat));
      at::_scaled_mm(values, values.t(), scale, scale.t(), {}, {}, at::kBFloat16, false);
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }();
  return holds;
}

/// `scale` of a matrix with `size` rows, as a column.
at::Tensor as_column(const at::Tensor& scale, int64_t size) {
  return scale.dim() > 0 ? scale : scale.expand({size, 1});
}

}  // namespace

bool multiplies_float8(c10::Device device) {
  if (device.is_meta()) return true;
  if (device.is_cpu()) return false;
  at::NoGradGuard no_grad;
  try {
    const at::TensorOptions options = at::TensorOptions().device(device);
    const at::Tensor values =
        at::zeros({16, 16}, options.dtype(at::kByte)).view(at::kFloat8_e4m3fn);
    const at::Tensor scale = at::ones({}, options.dtype(at::kFloat));
    at::_scaled_mm(values, values.t(), scale, scale, {}, {}, at::kBFloat16);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

at::Tensor multiply_by_device(const Quantized& left, const Quantized& right, at::ScalarType dtype,
                              Accumulation accumulation) {
  const int64_t m = left.values.size(0), k = left.values.size(1), n = right.values.size(1);
  if (left.values.is_meta() || m == 0 || k == 0)  // empty sums: zeros
    return at::zeros({m, n}, left.scale.options().dtype(dtype));
  const bool is_fast = accumulation == Accumulation::fast;
  const at::Tensor a = fill_up(left.values, 0, missing(k));
  const at::Tensor b = fill_up(right.values.t(), missing(n), missing(k)).t();
  at::Tensor a_factor = left.scale.reciprocal(), b_factor = right.scale.reciprocal();
  if (a_factor.dim() == 0 && b_factor.dim() == 0)
    return first_columns(at::_scaled_mm(a, b, a_factor, b_factor, {}, {}, dtype, is_fast), n);

  a_factor = as_column(a_factor, m);
  b_factor = as_column(b_factor.dim() > 0 ? b_factor.t() : b_factor, n).t();
  if (!is_fast && (dtype != at::kBFloat16 || !scales_rows_in_full(a))) {
    const at::Tensor one = at::ones({}, left.scale.options());
    const at::Tensor sums = at::_scaled_mm(a, b, one, one, {}, {}, at::kFloat, false);
    return (first_columns(sums, n) * a_factor * b_factor).to(dtype);
  }
  a_factor = a_factor.contiguous();
  b_factor = b_factor.contiguous();
  if (missing(n) > 0) b_factor = at::constant_pad_nd(b_factor, {0, missing(n)}, 1);
  // the kernel that scales rows returns only bfloat16
  return first_columns(at::_scaled_mm(a, b, a_factor, b_factor, {}, {}, at::kBFloat16, is_fast), n)
      .to(dtype);
}

}  // namespace titan::float8
