#include <titan/nn/head.h>

#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>

namespace titan::nn {
OutputHead::OutputHead(const OutputHeadOptions& options)
    : norm_(add_module("norm", std::make_unique<RmsNorm>(options.dim, options.norm_eps))) {
  if (options.tied_weight) {
    weight_ = options.tied_weight;
    borrow_parameter(weight_);
  } else {
    add_parameter("output.weight", {options.vocab_size, options.dim}, options.init);
    weight_ = shared_parameter("output.weight");
  }
}

at::Tensor OutputHead::forward(const at::Tensor& x, const Batch& batch) {
  const at::Tensor normalized = norm_(x, batch);
  if (!batch.labels.defined()) return ops::linear(normalized, weight_->value()).to(at::kFloat);
  const int64_t dim = normalized.size(-1);
  return ops::linear_cross_entropy(normalized.reshape({-1, dim}), weight_->value(),
                                   batch.labels.reshape({-1}));
}

}  // namespace titan::nn
