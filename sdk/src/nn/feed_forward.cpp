#include <titan/nn/feed_forward.h>

#include <titan/ops/swiglu.h>

namespace titan::nn {

FeedForward::FeedForward(const FeedForwardOptions& options)
    : w1_(add_module("w1", std::make_unique<Linear>(options.dim, options.hidden_dim,
                                                    WeightLayout::column, options.gate_init))),
      w2_(add_module("w2", std::make_unique<Linear>(options.hidden_dim, options.dim,
                                                    WeightLayout::row, options.output_init))),
      w3_(add_module("w3", std::make_unique<Linear>(options.dim, options.hidden_dim,
                                                    WeightLayout::column, options.output_init))) {
  set_region(Region::gathered_to_partial);
}

at::Tensor FeedForward::forward(const at::Tensor& x, const Batch& batch) {
  const at::Tensor gate = w1_(x, batch);  // in this order on every compiler
  return w2_(ops::swiglu(gate, w3_(x, batch)), batch);
}

}  // namespace titan::nn
