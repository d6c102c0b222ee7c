// Grouped matrix products by at::_grouped_mm, which computes all groups in one launch on a GPU.
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_grouped_mm.h>
#include <titan/ops/grouped_linear.h>

#include "composite_ops.h"
#include "running_sums.h"

namespace titan::composite {
namespace {

constexpr int64_t kAlignedBytes = 16;  // of rows and addresses: the GPU copies them by TMA
constexpr size_t kMostGroups = 1023;   // one thread of a block prepares each group

/// Whether the matrices of x (..., m, n) are row- or column-major as at::_grouped_mm requires.
bool is_aligned(const Tensor& x) {
  const int64_t unit = kAlignedBytes / static_cast<int64_t>(x.element_size());
  const int64_t rows = x.size(-2), cols = x.size(-1);
  const bool by_rows = x.stride(-1) == 1 && x.stride(-2) >= cols && x.stride(-2) % unit == 0;
  const bool by_cols = x.stride(-2) == 1 && x.stride(-1) >= rows && x.stride(-1) % unit == 0;
  return (by_rows || by_cols) && x.numel() > 0 && (x.dim() == 2 || x.stride(0) % unit == 0) &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kAlignedBytes == 0;
}

bool is_taken(const Tensor& a, const Tensor& b, at::IntArrayRef rows) {
  const at::ScalarType type = a.scalar_type();
  const bool is_known = type == at::kBFloat16 || type == at::kHalf || type == at::kFloat;
  // if the columns fill units of kAlignedBytes, the result has no gaps either
  const bool is_dense = b.size(-1) * static_cast<int64_t>(b.element_size()) % kAlignedBytes == 0;
  return is_known && is_dense && is_aligned(a) && is_aligned(b) && rows.size() <= kMostGroups;
}

/// End offset of each group.
Tensor ends_of(at::IntArrayRef rows, at::Device device) {
  return running_sums(rows, SumsFrom::first, device);
}

}  // namespace

Tensor grouped_mm(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  if (!is_taken(x, weight, rows)) return ops::grouped_mm_by_groups(x, weight, rows);
  return at::_grouped_mm(x, weight, ends_of(rows, x.device()));
}

Tensor grouped_mm_weight_grad(const Tensor& grad, const Tensor& x, at::IntArrayRef rows) {
  const Tensor columns = grad.t();
  if (!is_taken(columns, x, rows)) return ops::grouped_mm_weight_grad_by_groups(grad, x, rows);
  const Tensor out = at::_grouped_mm(columns, x, ends_of(rows, x.device()));
  // ATen does not specify the result of groups without rows
  for (size_t group = 0; group < rows.size(); ++group)
    if (rows[group] == 0) out.select(0, static_cast<int64_t>(group)).zero_();
  return out;
}

}  // namespace titan::composite
