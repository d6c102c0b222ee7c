// Gated feed-forward layer: w2(silu(w1 x) ⊙ w3 x). Shazeer, 2020.
#pragma once

#include <titan/nn/linear.h>
#include <titan/nn/module.h>

namespace titan::nn {

struct FeedForwardOptions {
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  Init gate_init;    ///< of w1
  Init output_init;  ///< of w2 and w3 (torchtitan draws both by the depth rule)
};

/// x (..., dim) -> (..., dim). Children w1 and w3 (column), w2 (row).
class TITAN_API FeedForward final : public Module {
 public:
  explicit FeedForward(const FeedForwardOptions& options);

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  Linear& w1_;
  Linear& w2_;
  Linear& w3_;
};

}  // namespace titan::nn
