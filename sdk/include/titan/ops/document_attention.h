// Attention within documents, for rows into which several documents were packed. Used by
// nn::Attention.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <titan/ops/attention.h>

namespace titan::ops {

/// As `attention`, but each query sees only keys of its own document (block-causal). Each run of
/// equal numbers in `documents` is computed separately, so there is no mask, and hidden pairs are
/// not computed.
///
/// `documents` int32 (B, S) in host memory. Differentiable once. Throws a config Error for shapes
/// that do not match.
TITAN_API at::Tensor document_attention(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const at::Tensor& documents,
                                        const AttentionOptions& options = {});

/// The lengths of the runs of equal numbers in `documents`, row after row; each row begins a new
/// run. Throws a config Error unless they are int32 (num_rows, seq_len) in host memory.
TITAN_API std::vector<int64_t> document_lengths(const at::Tensor& documents, int64_t num_rows,
                                                int64_t seq_len);

/// Default implementation of titan::packed_attention_forward and _backward, for device plugins
/// without a better one: attention per document, without a graph. Documents follow each other;
/// their `lengths` sum to T: q (T, H, hd), k and v (T, KV, hd) -> out (T, H, hd) contiguous,
/// logsumexp (H, T).
TITAN_API std::tuple<at::Tensor, at::Tensor> packed_attention_by_documents(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef lengths,
    bool causal, double scale);
/// dq, dk, dv of these shapes, contiguous.
TITAN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> packed_attention_backward_by_documents(
    const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& logsumexp, at::IntArrayRef lengths, bool causal,
    double scale);

}  // namespace titan::ops
