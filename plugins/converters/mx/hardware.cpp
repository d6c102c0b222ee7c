// Products of MXFP8 matrices by the matrix units of the device.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "blocks.h"

namespace titan::mx {
namespace {

using at::Tensor;

constexpr int64_t kTileRows = 128, kTileColumns = 4;
constexpr int64_t kMultiple = 16;  // of the right operand's rows

int64_t missing(int64_t size, int64_t multiple) {
  return (multiple - size % multiple) % multiple;
}

Tensor add_zeros(const Tensor& bytes, int64_t rows, int64_t columns) {
  if (rows == 0 && columns == 0) return bytes;
  return at::constant_pad_nd(bytes, {0, columns, 0, rows}, 0);
}

Tensor as_scales(const Tensor& bytes) {
  return in_tiles(bytes).view(at::kFloat8_e8m0fnu);
}

}  // namespace

Tensor in_tiles(const Tensor& scales) {
  const Tensor whole =
      add_zeros(scales, missing(scales.size(0), kTileRows), missing(scales.size(1), kTileColumns));
  const int64_t tile_rows = whole.size(0) / kTileRows, tile_columns = whole.size(1) / kTileColumns;
  // in a tile, rows 32 apart are adjacent
  return whole.view({tile_rows, 4, kTileRows / 4, tile_columns, kTileColumns})
      .permute({0, 3, 2, 1, 4})
      .contiguous()
      .view({-1});
}

Tensor multiply_by_device(const Blocks& left, const Blocks& right, at::ScalarType dtype) {
  const int64_t m = left.values.size(0), n = right.values.size(0);
  if (left.values.is_meta() || m == 0 || left.values.size(1) == 0)
    return at::zeros({m, n}, left.scales.options().dtype(dtype));
  const int64_t more = missing(n, kMultiple);
  const Tensor b = add_zeros(right.values.view(at::kByte), more, 0).view(at::kFloat8_e4m3fn);
  const Tensor product =
      at::_scaled_mm(left.values, b.t(), as_scales(left.scales),
                     as_scales(add_zeros(right.scales, more, 0)), {}, {}, at::kBFloat16);
  return (more == 0 ? product : product.narrow(1, 0, n).contiguous()).to(dtype);
}

bool multiplies_mxfp8(c10::Device device) {
  if (device.is_meta()) return true;
  if (device.is_cpu()) return false;
  const at::NoGradGuard no_grad;
  try {
    const Blocks zeros =
        quantize(at::zeros({128, 128}, at::TensorOptions().device(device).dtype(at::kBFloat16)),
                 Rounding::floor);
    multiply_by_device(zeros, zeros, at::kBFloat16);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace titan::mx
