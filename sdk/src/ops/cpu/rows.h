// Tensors as rows of floats, for the inner loops. Used by the CPU implementations in this folder.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::ops::cpu {

/// A tensor (..., cols) in fp32 as a matrix whose rows are contiguous and `stride` apart.
struct Rows {
  at::Tensor
      tensor;  ///< holds the memory: the tensor itself, or a copy where type or layout needed one
  const float* data;
  int64_t rows, cols, stride;

  const float* row(int64_t i) const { return data + i * stride; }
};

/// Copies only what is not fp32 or whose rows are not equally spaced.
inline Rows rows_of(const at::Tensor& x) {
  at::Tensor tensor = x.to(at::kFloat);
  const int64_t last = tensor.dim() - 1;
  bool spaced = last >= 0 && tensor.stride(last) == 1;
  for (int64_t i = last - 2; spaced && i >= 0; --i) {
    spaced = tensor.stride(i) == tensor.stride(i + 1) * tensor.size(i + 1);
  }
  if (!spaced) tensor = tensor.contiguous();
  const int64_t cols = last >= 0 ? tensor.size(last) : 1;
  const int64_t rows = cols > 0 ? tensor.numel() / cols : 0;
  const int64_t stride = last >= 1 ? tensor.stride(last - 1) : cols;
  return {tensor, tensor.const_data_ptr<float>(), rows, cols, stride};
}

/// Rows per thread such that a thread has some work to do.
inline int64_t grain(int64_t cols) {
  return cols > 0 ? std::max<int64_t>(1, 16384 / cols) : 1;
}

}  // namespace titan::ops::cpu
