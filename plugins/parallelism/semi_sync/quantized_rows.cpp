#include "quantized_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace titan::semi_sync {
namespace {

constexpr int64_t kScaleBytes = 4;
constexpr double kLargest = 127;

}  // namespace

int64_t bytes_of_row(int64_t columns) {
  return ((columns + 3) / 4 + 1) * 4;
}

at::Tensor to_int8_rows(const at::Tensor& rows) {
  const int64_t columns = rows.size(1);
  at::Tensor bytes =
      at::zeros({rows.size(0), bytes_of_row(columns)}, rows.options().dtype(at::kByte));
  if (rows.numel() == 0) return bytes;
  const at::Tensor max = rows.abs().amax({1}, /*keepdim=*/true);
  at::Tensor scale = kLargest / max;
  scale.masked_fill_(scale.isinf(), 1);
  bytes.narrow(1, 0, kScaleBytes).copy_(scale.view(at::kByte));
  const at::Tensor integers = (rows * scale).round_().clamp_(-kLargest, kLargest).to(at::kChar);
  bytes.narrow(1, kScaleBytes, columns).copy_(integers.view(at::kByte));
  return bytes;
}

at::Tensor from_int8_rows(const at::Tensor& bytes, int64_t columns) {
  const at::Tensor scale = bytes.narrow(1, 0, kScaleBytes).contiguous().view(at::kFloat);
  const at::Tensor integers =
      bytes.narrow(1, kScaleBytes, columns).contiguous().view(at::kChar).to(at::kFloat);
  return integers.div_(scale);
}

}  // namespace titan::semi_sync
