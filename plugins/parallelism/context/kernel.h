// Attention over the keys of all ranks. The plugin installs it in every attention layer.
#pragma once

#include <memory>

#include <titan/nn/attention_layer.h>

#include "exchange.h"
#include "sequence_cut.h"

namespace titan::context_parallel {

/// Ring attention (Liu et al., 2023) with its own backward. Queries, keys, values and the result
/// are this rank's tokens of `cut`, (B, H, n, hd) and (B, KV, n, hd); the numbers of heads come
/// from the shapes. `Batch::documents` covers whole rows, in rank order.
///
/// Each block of keys is attended to by `rule`, merged with the others in fp32 (double for double)
/// and rounded once. The backward recomputes each block from the final output and logsumexp, so
/// only q, k, v, the output and one number per query are kept. Keys that no query of this rank sees
/// cost no computation. Differentiable once.
std::unique_ptr<nn::AttentionKernel> make_kernel(
    const SequenceCut& cut, int64_t rank, std::shared_ptr<const Exchange> exchange,
    std::shared_ptr<const nn::AttentionRule> rule = nn::plain_attention());

}  // namespace titan::context_parallel
