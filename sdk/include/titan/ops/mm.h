// Matrix products that avoid ATen's very slow 16-bit products on some CPUs.
#pragma once

#include <ATen/core/Tensor.h>

#include <titan/export.h>

namespace titan::ops {

/// a (m, k) · b (k, n) -> (m, n), one dtype throughout; 16-bit dtypes are summed in fp32. No graph.
///
/// On a CPU without the instructions that oneDNN needs (AVX-512 for bf16, AVX-512 FP16 for fp16),
/// ATen multiplies 16-bit values one by one, some tens of times slower than fp32. There, and on
/// devices that compute on the host, this multiplies fp32 copies and rounds the result once.
TITAN_API at::Tensor mm(const at::Tensor& a, const at::Tensor& b);
/// The same, written to `out`.
TITAN_API void mm_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// The same, added to `out` before rounding.
TITAN_API void add_mm_to(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace titan::ops
