// Queries, keys and values of an attention layer as one product.
#pragma once

#include <memory>

#include <titan/nn/attention.h>

namespace titan::fused {

/// Multiplies by the three weights side by side and rotates queries and keys where the product
/// lies; its backward is one product for the input and one for the weights. The gradient of the
/// input is one sum over all outputs where the layer's own adds up three: it differs by round-off.
std::unique_ptr<nn::AttentionInputKernel> make_attention_inputs(int64_t head_dim);

}  // namespace titan::fused
