#include "quantized_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace titan::semi_sync {
namespace {

constexpr int64_t kScaleBytes = 4;

double largest(RowType type) {
  return type == RowType::int8 ? 127 : 448;
}

at::ScalarType dtype_of(RowType type) {
  return type == RowType::int8 ? at::kChar : at::kFloat8_e4m3fn;
}

}  // namespace

int64_t bytes_of_row(int64_t columns) {
  return ((columns + 3) / 4 + 1) * 4;
}

at::Tensor to_quantized_rows(const at::Tensor& rows, RowType type) {
  const int64_t columns = rows.size(1);
  at::Tensor bytes =
      at::zeros({rows.size(0), bytes_of_row(columns)}, rows.options().dtype(at::kByte));
  if (rows.numel() == 0) return bytes;
  const at::Tensor max = rows.abs().amax({1}, /*keepdim=*/true);
  at::Tensor scale = largest(type) / max;
  scale.masked_fill_(scale.isinf(), 1);
  bytes.narrow(1, 0, kScaleBytes).copy_(scale.view(at::kByte));
  at::Tensor scaled = rows * scale;
  if (type == RowType::int8) scaled.round_();
  scaled.clamp_(-largest(type), largest(type));
  bytes.narrow(1, kScaleBytes, columns).copy_(scaled.to(dtype_of(type)).view(at::kByte));
  return bytes;
}

at::Tensor from_quantized_rows(const at::Tensor& bytes, int64_t columns, RowType type) {
  const at::Tensor scale = bytes.narrow(1, 0, kScaleBytes).contiguous().view(at::kFloat);
  const at::Tensor numbers =
      bytes.narrow(1, kScaleBytes, columns).contiguous().view(dtype_of(type)).to(at::kFloat);
  return numbers.div_(scale);
}

}  // namespace titan::semi_sync
