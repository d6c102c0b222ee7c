#include <titan/nn/embedding.h>

#include <titan/ops/embedding.h>

namespace titan::nn {

Embedding::Embedding(int64_t vocab_size, int64_t dim, const Init& init)
    : weight_(add_parameter("weight", {vocab_size, dim}, init)) {}

at::Tensor Embedding::forward(const at::Tensor&, const Batch& batch) {
  return ops::embedding(weight_.value(), batch.tokens);
}

}  // namespace titan::nn
