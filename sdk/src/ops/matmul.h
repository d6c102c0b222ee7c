// Matrix products in fp32 on the CPU, where the CPU gives more than LibTorch takes. Used by linear
// and the chunked losses; exported for the tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// out (m, n) = a (m, k) · b (k, n), plus what is in out with `accumulate`: large ones by
/// multiply_in_tiles where that can, all others by at::mm_out and addmm_.
TITAN_API void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                            bool accumulate);

/// The same by own inner loops (kernels/matmul.h); false, and nothing done, where there are none
/// for these tensors or this CPU. An element of the result depends on its row of a and its column
/// of b alone: not on the number of threads, nor on the other rows. Sums run over at most 256
/// products, those sums are added in order.
TITAN_API bool multiply_in_tiles(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                                 bool accumulate);

/// a (m, k) · b (k, n).
TITAN_API at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace titan::ops
