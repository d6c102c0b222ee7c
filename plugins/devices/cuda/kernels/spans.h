// Converts tensors to the kernels' spans and dtypes. Used by the fused operations.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <titan/error.h>

#include "numbers.h"

namespace titan::cuda {

/// The range of storage that a strided tensor covers, from its first element on.
template <class T>
grid::Span<T> span_of(const at::Tensor& x) {
  if (!x.defined() || x.numel() == 0) return {};
  int64_t last = 0;
  for (int64_t d = 0; d < x.dim(); ++d) last += (x.size(d) - 1) * x.stride(d);
  TITAN_ASSERT(x.element_size() == static_cast<int64_t>(sizeof(T)), x.scalar_type());
  if constexpr (std::is_const_v<T>)
    return {static_cast<T*>(x.const_data_ptr()), last + 1};
  else
    return {static_cast<T*>(x.mutable_data_ptr()), last + 1};
}

/// Whether accesses of 16 bytes to rows `stride` elements apart are aligned.
inline bool has_aligned_rows(const at::Tensor& x, int64_t stride) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % grid::kAccess == 0 &&
         stride * x.element_size() % grid::kAccess == 0;
}

/// Calls use(T{}) with the kernels' type T for `type`.
template <class Use>
void with_type(at::ScalarType type, const Use& use) {
  switch (type) {
    case at::kFloat:
      return use(float{});
    case at::kBFloat16:
      return use(BFloat16{});
    case at::kHalf:
      return use(Half{});
    default:
      TITAN_ASSERT(false, "no kernel for ", type);
  }
}

inline int64_t blocks_for(int64_t count, int64_t per_block) {
  return (count + per_block - 1) / per_block;
}

}  // namespace titan::cuda
