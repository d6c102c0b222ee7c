// Tensors as rows of floats, for the inner loops. Used by the CPU implementations in this folder.
// bf16 rows are read and written one row at a time through memory that stays in the cache: the same
// bits as with a full fp32 copy, without its memory.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "../kernels/kernels.h"

namespace titan::ops::cpu {

/// A tensor (..., cols) in fp32 or bf16 as a matrix whose rows are contiguous and `stride` apart.
struct Rows {
  at::Tensor
      tensor;  ///< holds the memory: the tensor itself, or a copy where type or layout needed one
  const void* data;
  bool is_narrow;  ///< bf16
  int64_t rows, cols, stride;

  /// Whether the rows follow each other without a gap.
  bool is_flat() const { return stride == cols || rows <= 1; }

  /// `count` elements in fp32, from offset `first` in the memory: in place, or in `scratch`.
  const float* piece(int64_t first, int64_t count, float* scratch) const {
    if (!is_narrow) return static_cast<const float*>(data) + first;
    kernels().widen_bf16(static_cast<const uint16_t*>(data) + first, scratch, count);
    return scratch;
  }
  const float* row(int64_t i, float* scratch) const { return piece(i * stride, cols, scratch); }
};

/// Copies only tensors that are neither fp32 nor bf16, or whose rows are not equally spaced.
inline Rows rows_of(const at::Tensor& x) {
  const bool is_narrow = x.scalar_type() == at::kBFloat16;
  at::Tensor tensor = is_narrow ? x : x.to(at::kFloat);
  const int64_t last = tensor.dim() - 1;
  bool spaced = last >= 0 && tensor.stride(last) == 1;
  for (int64_t i = last - 2; spaced && i >= 0; --i) {
    spaced = tensor.stride(i) == tensor.stride(i + 1) * tensor.size(i + 1);
  }
  if (!spaced) tensor = tensor.contiguous();
  const int64_t cols = last >= 0 ? tensor.size(last) : 1;
  const int64_t rows = cols > 0 ? tensor.numel() / cols : 0;
  const int64_t stride = last >= 1 ? tensor.stride(last - 1) : cols;
  return {tensor, tensor.const_data_ptr(), is_narrow, rows, cols, stride};
}

/// A vector in fp32.
inline at::Tensor floats_of(const at::Tensor& x) {
  return x.to(at::kFloat).contiguous();
}

/// A new contiguous tensor that is written in fp32, piece by piece.
class Result {
 public:
  /// Of dtype `type`, written through fp32 memory if that is neither fp32 nor bf16.
  Result(at::IntArrayRef sizes, at::ScalarType type)
      : type_(type),
        is_narrow_(type == at::kBFloat16),
        tensor_(at::empty(sizes, is_narrow_ ? at::kBFloat16 : at::kFloat)),
        data_(tensor_.mutable_data_ptr()) {}

  /// The memory to write elements to, from `first` on: in place, or `scratch`.
  float* piece(int64_t first, float* scratch) const {
    return is_narrow_ ? scratch : static_cast<float*>(data_) + first;
  }
  /// Called after they were written.
  void finish(int64_t first, int64_t count, const float* scratch) const {
    if (is_narrow_) kernels().narrow_bf16(scratch, static_cast<uint16_t*>(data_) + first, count);
  }
  at::Tensor tensor() const { return tensor_.to(type_); }

 private:
  at::ScalarType type_;
  bool is_narrow_;
  at::Tensor tensor_;
  void* data_;
};

/// Scratch memory for `count` pieces of `width` elements; empty if nothing is bf16.
class Pieces {
 public:
  Pieces(bool is_used, int64_t count, int64_t width)
      : width_(width), memory_(static_cast<size_t>(is_used ? count * width : 0)) {}
  float* operator[](int64_t i) { return memory_.empty() ? nullptr : memory_.data() + i * width_; }

 private:
  int64_t width_;
  std::vector<float> memory_;
};

/// Rows per thread such that a thread has some work to do.
inline int64_t grain(int64_t cols) {
  return cols > 0 ? std::max<int64_t>(1, 16384 / cols) : 1;
}

}  // namespace titan::ops::cpu
