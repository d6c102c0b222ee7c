// The attention that sees keys of all ranks. Put into every layer that attends by the
// plugin.
#pragma once

#include <memory>

#include <titan/nn/attention_layer.h>

#include "exchange.h"
#include "sequence_cut.h"

namespace titan::context_parallel {

/// Ring attention (Liu et al., 2023) with an own backward. Queries, keys and values are this rank's
/// share of `cut`, (B, H, n, hd) and (B, KV, n, hd), and so is the result; heads come from the
/// shapes. `Batch::documents` covers whole rows, in rank order.
///
/// Each block of keys is attended to by `rule`, in fp32 merged with the others
/// (double for double) and rounded once; the backward computes each block again from the final
/// output and logsumexp. Only q, k, v, the output and one number per query are kept. What no query
/// of this rank sees costs no computation. Differentiable once.
std::unique_ptr<nn::AttentionKernel> make_kernel(
    const SequenceCut& cut, int64_t rank, std::shared_ptr<const Exchange> exchange,
    std::shared_ptr<const nn::AttentionRule> rule = nn::plain_attention());

}  // namespace titan::context_parallel
