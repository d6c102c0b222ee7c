// A gated feed-forward layer as one node of the graph.
#pragma once

#include <memory>

#include <titan/nn/feed_forward.h>

namespace titan::fused {

/// Keeps the input and the two products of it; computes the gate's product again in the backward,
/// in one pass with its gradients and where its inputs lie. The same bits as the layer's own.
std::unique_ptr<nn::FeedForwardKernel> make_feed_forward();

}  // namespace titan::fused
