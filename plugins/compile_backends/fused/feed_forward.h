// Computes a gated feed-forward layer as one autograd node. Used by Fused.
#pragma once

#include <memory>

#include <titan/nn/feed_forward.h>

namespace titan::fused {

/// Saves the input and its two products. The backward recomputes the SwiGLU product in one pass
/// with its gradients, in place of its inputs. Bitwise equal to the layer's own.
std::unique_ptr<nn::FeedForwardKernel> make_feed_forward();

}  // namespace titan::fused
