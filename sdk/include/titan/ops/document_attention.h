// Attention that stays inside documents, for rows that were packed from several. Used by
// nn::Attention.
#pragma once

#include <titan/ops/attention.h>

namespace titan::ops {

/// As `attention`, with each query seeing only keys of its own document (block-causal): each run of
/// equal numbers in `documents` is attended to by itself, so no mask is made and what is not seen
/// is not computed.
///
/// `documents` int32 (B, S) in host memory. Differentiable once. Throws config Error on shapes that
/// do not fit.
TITAN_API at::Tensor document_attention(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const at::Tensor& documents,
                                        const AttentionOptions& options = {});

}  // namespace titan::ops
