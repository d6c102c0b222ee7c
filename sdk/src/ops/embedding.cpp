// embedding: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/embedding.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

Tensor embedding_on_device(const Tensor& weight, const Tensor& tokens) {
  static const auto operation = find_operation<EmbeddingForward>("titan::embedding_forward");
  BelowAutograd guard;
  return operation.call(weight, tokens);
}

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* ctx, const Tensor& weight, const Tensor& tokens) {
    ctx->save_for_backward({tokens});
    ctx->saved_data["rows"] = weight.size(0);
    return embedding_on_device(weight, tokens);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("embedding");
    static const auto operation = find_operation<EmbeddingBackward>("titan::embedding_backward");
    const variable_list saved = ctx->get_saved_variables();
    BelowAutograd guard;
    return {operation.call(grads[0], saved[0], ctx->saved_data["rows"].toInt()), Tensor()};
  }
};

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& tokens) {
  TITAN_CHECK(weight.dim() == 2 && tokens.scalar_type() == at::kLong, config,
              "embedding: weight must be (V, dim) and tokens int64, got ", weight.sizes(), " and ",
              tokens.scalar_type());
  if (records_graph({&weight})) return Embedding::apply(weight, tokens);
  return embedding_on_device(weight, tokens);
}

}  // namespace titan::ops
