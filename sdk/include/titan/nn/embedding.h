// Token ids to vectors: the first layer of a language model.
#pragma once

#include <titan/nn/linear.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// Ignores its input; reads `batch.tokens` (rows, seq_len) -> (rows, seq_len, dim). Parameter
/// "weight" (vocab, dim).
class TITAN_API Embedding final : public Module {
 public:
  Embedding(int64_t vocab_size, int64_t dim, const Init& init);

  Parameter& weight() { return weight_; }
  /// For a head that is tied to this embedding.
  std::shared_ptr<Parameter> shared_weight() const { return shared_parameter("weight"); }
  WeightLayout layout() const { return WeightLayout::vocab; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  Parameter& weight_;
};

}  // namespace titan::nn
