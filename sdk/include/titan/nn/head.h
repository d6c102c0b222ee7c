// The last layer: normalisation and projection to the vocabulary, with the loss computed in chunks.
#pragma once

#include <memory>

#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/rms_norm.h>

namespace titan::nn {

struct OutputHeadOptions {
  int64_t dim = 0;
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  Init init;
  /// The embedding's weight when head and embedding are tied; else null and the head owns
  /// "output.weight".
  std::shared_ptr<Parameter> tied_weight;
};

/// x (B, S, dim) -> logits (B, S, vocab) in fp32 or, when the batch carries labels, the **sum** of
/// the token losses: a scalar, fp32, computed such that the full logits never exist. Parameters
/// "norm.weight" and "output.weight".
class TITAN_API OutputHead final : public Module {
 public:
  explicit OutputHead(const OutputHeadOptions& options);

  Parameter& weight() { return *weight_; }
  WeightLayout layout() const { return WeightLayout::vocab; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  RmsNorm& norm_;
  std::shared_ptr<Parameter> weight_;
};

}  // namespace titan::nn
