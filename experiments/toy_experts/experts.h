// A small mixture of experts that replaces a feed-forward: each token goes through `top_k` of
// `experts`, without dropping. Bias: Wang et al., 2024 (arXiv:2408.15664); loss over sequences:
// DeepSeek-V3, 2024 (arXiv:2412.19437).
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <titan/dist/collectives.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/linear.h>
#include <titan/nn/step_module.h>
#include <titan/nn/token_counts.h>

namespace toy_experts {

using namespace titan;  // NOLINT: small
using at::Tensor;

/// Options of both plugins.
struct Options {
  int64_t experts = 8, top_k = 2, hidden_dim = 64, degree = 2;
  double balance = 1e-3, auxiliary = 1e-2;
};
const nn::Init kInit = nn::Init::truncated_normal(0, 0.1);

/// Rows `numbers` of x (n, D); a row may occur several times.
inline Tensor take(const Tensor& x, const Tensor& numbers) {
  return x.gather(0, numbers.unsqueeze(1).expand({-1, x.size(1)}));
}

/// x (B, S, D) -> the same: the weighted sum of w2(silu(w1 x)) over the chosen experts.
class Experts final : public nn::Module, public nn::StepModule {
 public:
  Experts(const Options& options, int64_t dim)
      : o(options),
        gate_(add_module("gate", std::make_unique<nn::Linear>(
                                     dim, o.experts, nn::WeightLayout::replicated, kInit))),
        w1_(add_parameter("w1", {o.experts, o.hidden_dim, dim}, kInit)),
        w2_(add_parameter("w2", {o.experts, dim, o.hidden_dim}, kInit)),
        bias_(add_state("bias", {o.experts}, nn::Init::constant(0))) {}

  void spread_over(const dist::Group& group) {
    for (nn::Parameter* weight : {&w1_, &w2_}) weight->shard_over(0, group);
    group_ = group;
  }

  void connect(const dist::Mesh& mesh) override { mesh_ = &mesh; }
  void begin_run() override { counts_.clear(); }
  /// Decreases the bias of experts with more tokens than average, and increases that of others.
  void commit(const Step&) override {
    const Tensor counts = counts_.sum(*mesh_), too_few = counts.sum() - counts * o.experts;
    bias_.value().add_(too_few.sign(), o.balance);
  }

 protected:
  Tensor forward(const Tensor& x, const Batch& batch) override {
    const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
    const Tensor scores = gate_(x, batch).to(precise).sigmoid();  // (B, S, E)
    const Tensor chosen = std::get<1>((scores.detach() + bias_.value()).topk(o.top_k));
    const Tensor is_chosen = at::zeros_like(scores).scatter(-1, chosen, 1.0);
    const Tensor counts = is_chosen.flatten(0, 1).sum(0).to(at::kLong);
    counts_.add(counts, batch);

    const Tensor order = chosen.flatten().argsort(/*stable=*/true, 0, false);
    const auto told = dist::exchange_counts(counts, order.numel(), group_);
    const Tensor rows = take(x.reshape({-1, x.size(2)}), order.div(o.top_k, "floor"));
    auto parts = told.by_number(dist::all_to_all(rows, told.splits, group_));
    const auto w1 = w1_.value().unbind(0), w2 = w2_.value().unbind(0);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = at::silu(parts[i].matmul(w1[i].t())).matmul(w2[i].t());
    const Tensor done = dist::all_to_all(told.by_rank(parts), told.splits.swapped(), group_);

    const Tensor weights = scores.gather(-1, chosen), total = weights.sum(-1, /*keepdim=*/true);
    const Tensor by_token = take(done, order.argsort()).view({x.size(0), x.size(1), o.top_k, -1});
    const Tensor y = (by_token * (weights / total).unsqueeze(-1)).sum(2).to(x.scalar_type());
    // per sequence: sum over experts of load times mean score; 1 when both are even
    const Tensor share = (scores / scores.sum(-1, /*keepdim=*/true)).mean(1);
    const Tensor load = is_chosen.mean(1) * (static_cast<double>(o.experts) / o.top_k);
    return nn::with_auxiliary_loss(y, (share * load).sum() * o.auxiliary * scores.size(1), batch);
  }

 private:
  Options o;
  nn::Module& gate_;
  nn::Parameter &w1_, &w2_, &bias_;
  dist::Group group_;  // ranks that share the experts
  const dist::Mesh* mesh_ = nullptr;
  nn::TokenCounts counts_;  // of each expert
};

}  // namespace toy_experts
