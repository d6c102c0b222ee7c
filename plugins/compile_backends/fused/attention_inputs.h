// Computes queries, keys and values of an attention layer as one product. Used by Fused.
#pragma once

#include <memory>

#include <titan/nn/attention.h>

namespace titan::fused {

/// Multiplies by the three concatenated weights and applies RoPE to queries and keys in place. The
/// backward is one product for the input and one for the weights. The input's gradient is one sum
/// over all outputs, while the layer's own adds three: it differs by round-off.
std::unique_ptr<nn::AttentionInputKernel> make_attention_inputs(int64_t head_dim);

}  // namespace titan::fused
