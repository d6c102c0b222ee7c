// Matrix products in fp32 on the CPU, where the CPU gives more than LibTorch takes. Used by linear
// and the chunked losses; exported for the tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// out (m, n) = a (m, k) · b (k, n), plus what is in out with `accumulate`.
///
/// In fp32 on a CPU for which there are own inner loops (kernels/matmul.h) an element of the result
/// depends on its row of a and its column of b alone: not on the number of threads, nor on the
/// other rows. Sums run over at most 256 products, those sums are added in order. Everything else
/// is at::mm_out or addmm_. `out` is a contiguous matrix, or rows of one.
TITAN_API void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                            bool accumulate);

/// a (m, k) · b (k, n).
TITAN_API at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace titan::ops
