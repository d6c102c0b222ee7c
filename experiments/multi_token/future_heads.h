// The last layer of a model that also predicts tokens after the next one. Gloeckle et al., Better &
// Faster Large Language Models via Multi-token Prediction, 2024 (arXiv:2404.19737).
#pragma once

#include <memory>
#include <vector>

#include <titan/models/transformer.h>
#include <titan/nn/head.h>
#include <titan/nn/module.h>

namespace multi_token {

struct FutureOptions {
  int64_t count = 0;  // heads in addition to the main one; head k predicts the token k places later
  double weight = 0;  // of the mean of their losses
};

/// x (B, S, dim) -> the main head's loss or logits. Head k is a transformer block of its own; all
/// share the main head's norm and projection. Their losses are one auxiliary loss.
class FutureHeads final : public titan::nn::Module {
 public:
  FutureHeads(const titan::models::Transformer& network, const FutureOptions& options);

  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  /// From now on the input of each run without labels is kept for `draft`.
  void keep_inputs(bool keeps) { keeps_ = keeps; }
  /// The logits of the future heads, (1, count() · n, vocab), one head after the other, for the
  /// first tokens of the kept input. `batch`: these tokens; n of them are in Batch::logits_of.
  at::Tensor draft(const titan::Batch& batch);

 protected:
  at::Tensor forward(const at::Tensor& x, const titan::Batch& batch) override;

 private:
  at::Tensor future_loss(const at::Tensor& x, const titan::Batch& batch);

  double weight_;
  std::vector<titan::nn::Module*> blocks_;  // of the heads in addition to the main one
  titan::nn::OutputHead& head_;
  bool keeps_ = false, is_drafting_ = false;
  at::Tensor input_;  // (1, tokens, dim)
};

}  // namespace multi_token
