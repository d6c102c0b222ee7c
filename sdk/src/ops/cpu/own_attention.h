// Attention by Titan's own loops, in a given build of them: the work of one task and its separation
// from other tasks. Used by attention.cpp and by the tests of all builds.
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>

#include "../kernels/kernels.h"

namespace titan::ops::cpu {

/// Whether the loops support q and its keys: fp32 or bf16, heads of at most 128 elements, an even
/// number in bf16, scale > 0. A single query in bf16 is computed by ATen, whose loop for it reads
/// less.
TITAN_API bool has_own_attention(const at::Tensor& q, bool causal, double scale);

/// Out (B, H, S, hd) over (B, S, H, hd) storage and logsumexp (B, H, S) in fp32. Heads are
/// contiguous.
TITAN_API std::tuple<at::Tensor, at::Tensor> own_attention_forward(const Kernels& kernels,
                                                                   const at::Tensor& q,
                                                                   const at::Tensor& k,
                                                                   const at::Tensor& v, bool causal,
                                                                   double scale);

/// dq, dk and dv, with the storage layout of `out`. The same bits with any number of threads.
TITAN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> own_attention_backward(
    const Kernels& kernels, const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
    const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp, bool causal,
    double scale);

}  // namespace titan::ops::cpu
