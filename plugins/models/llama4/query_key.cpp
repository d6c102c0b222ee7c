#include "query_key.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <titan/ops/rms_norm.h>

namespace titan::llama4 {
namespace {

using at::Tensor;

/// The factors of queries, (B or 1, S, 1, 1) in fp32, double for a double q (B, S, H, hd).
Tensor factors_of(const Tensor& q, const Batch& batch, const Temperature& by) {
  const Tensor positions = batch.positions.defined()
                               ? batch.positions
                               : at::arange(q.size(1), q.options().dtype(at::kLong)).unsqueeze(0);
  // exact in double; ATen's floor_divide has no kernel for the meta device
  const Tensor steps = ((positions + 1).to(at::kDouble) / static_cast<double>(by.floor)).floor();
  const Tensor grown = steps.to(c10::promoteTypes(q.scalar_type(), at::kFloat)).log1p() * by.scale;
  return (grown + 1).unsqueeze(-1).unsqueeze(-1);
}

class QueryKey final : public nn::AttentionInputKernel {
 public:
  QueryKey(std::unique_ptr<nn::AttentionInputKernel> inner, const QueryKeyOptions& options)
      : inner_(std::move(inner)), options_(options) {}

  nn::AttentionInputs project(const Tensor& x, const nn::AttentionInputWeights& weights,
                              nn::Rope* rope, const Batch& batch) override {
    nn::AttentionInputs inputs = inner_->project(x, weights, rope, batch);
    if (options_.norm_eps) {
      inputs.q = normalised(inputs.q);
      inputs.k = normalised(inputs.k);
    }
    if (options_.temperature) {
      const Tensor factors = factors_of(inputs.q, batch, *options_.temperature);
      inputs.q = (inputs.q * factors).to(inputs.q.scalar_type());
    }
    return inputs;
  }

 private:
  /// Rounded once, as with a weight of ones.
  Tensor normalised(const Tensor& heads) const {
    return ops::rms_norm(heads, at::ones({heads.size(-1)}, heads.options()), *options_.norm_eps);
  }

  std::unique_ptr<nn::AttentionInputKernel> inner_;
  QueryKeyOptions options_;
};

}  // namespace

void set_query_key(nn::Attention& attention, const QueryKeyOptions& options) {
  if (!options.norm_eps && !options.temperature) return;
  attention.wrap_input_kernel(
      options.norm_eps ? "the norm of queries and keys" : "the temperature of queries",
      [&](std::unique_ptr<nn::AttentionInputKernel> inner) {
        return std::make_unique<QueryKey>(std::move(inner), options);
      });
}

}  // namespace titan::llama4
