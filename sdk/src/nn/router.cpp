#include <titan/nn/router.h>

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/ops/linear.h>
#include <titan/recompute.h>

namespace titan::nn {
namespace {

using at::Tensor;

/// Multiplies in fp32, double for double.
class PreciseKernel final : public LinearKernel {
 public:
  Tensor matmul(const Tensor& x, Parameter& weight) override {
    const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
    return ops::linear(x.to(precise), weight.value().to(precise));
  }
};

/// Of each sequence E / (k S) sum over experts of count times mean share of scores, times its
/// tokens, added up: 1 a token where both are even.
Tensor balance_loss(const Tensor& scores, const Tensor& experts) {
  const double num_experts = static_cast<double>(scores.size(2)),
               top_k = static_cast<double>(experts.size(2));
  const Tensor chosen = at::zeros_like(scores).scatter_(-1, experts, 1.0);
  const Tensor share = (scores / scores.sum(-1, /*keepdim=*/true)).mean(1);  // (B, E)
  const Tensor load = chosen.mean(1) * (num_experts / top_k);
  return (share * load).sum() * static_cast<double>(scores.size(1));
}

}  // namespace

/// scores (B, S, E) -> experts (B, S, k) int64.
class Router::Choice final : public Module {
 public:
  Choice(const RouterOptions& options, std::shared_ptr<Parameter> bias)
      : options_(options), bias_(std::move(bias)) {
    if (bias_) borrow_parameter(bias_);
  }

 protected:
  Tensor forward(const Tensor& scores, const Batch&) override {
    const at::NoGradGuard no_grad;
    return keepable({.kind = Operation::Kind::routing},
                    [&] { return options_.forces_balance ? in_turn(scores) : best(scores); });
  }

 private:
  /// Sorted, not topk: of equal values topk takes any.
  Tensor best(const Tensor& scores) const {
    const Tensor values = bias_ ? scores.detach() + bias_->value() : scores.detach();
    const Tensor order = std::get<1>(values.sort(/*stable=*/true, -1, /*descending=*/true));
    return order.narrow(-1, 0, options_.top_k).contiguous();
  }
  Tensor in_turn(const Tensor& scores) const {
    const int64_t rows = scores.size(0), length = scores.size(1);
    const Tensor slots = at::arange(length * options_.top_k, scores.options().dtype(at::kLong));
    return slots.remainder(options_.num_experts)
        .view({1, length, options_.top_k})
        .expand({rows, -1, -1})
        .contiguous();
  }

  RouterOptions options_;
  std::shared_ptr<Parameter> bias_;
};

Router::Router(const RouterOptions& options, std::shared_ptr<Parameter> bias)
    : options_(options),
      bias_(std::move(bias)),
      gate_(add_module("gate", std::make_unique<Linear>(options.dim, options.num_experts,
                                                        WeightLayout::replicated, options.init))),
      choice_(add_module("choice", std::make_unique<Choice>(options, bias_))) {
  TITAN_CHECK(options.top_k >= 1 && options.top_k <= options.num_experts, config,
              "a token cannot go to ", options.top_k, " of ", options.num_experts, " experts");
  TITAN_ASSERT((bias_ != nullptr) == (options.balance_rate != 0),
               "a bias and the rate at which it moves come together");
  if (options.is_float32)
    gate_.set_kernel("a router in float32", std::make_unique<PreciseKernel>());
}

Router::~Router() = default;

at::Tensor Router::forward(const Tensor& x, const Batch& batch) {
  const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
  const Tensor logits = gate_(x, batch).to(precise);
  return options_.score == RouterScore::softmax ? logits.softmax(-1) : logits.sigmoid();
}

Routing Router::route(const Tensor& x, const Batch& batch) {
  Tensor scores = (*this)(x, batch);
  const Tensor experts = choice_(scores, batch), flat = experts.flatten();
  const Tensor counts =
      at::zeros({options_.num_experts}, flat.options()).scatter_add_(0, flat, at::ones_like(flat));
  if (bias_) counts_.add(counts, batch);
  if (options_.balance_loss != 0)
    scores =
        with_auxiliary_loss(scores, balance_loss(scores, experts) * options_.balance_loss, batch);
  Tensor weights = scores.gather(-1, experts);
  if (options_.normalises) weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
  if (options_.scale != 1) weights = weights * options_.scale;
  return {.experts = experts.flatten(0, -2), .weights = weights.flatten(0, -2), .counts = counts};
}

void Router::connect(const dist::Mesh& mesh) {
  mesh_ = &mesh;
  for (const char* axis : {"cp", "tp"})
    TITAN_CHECK(options_.balance_loss == 0 || mesh.group(axis).size() == 1, config,
                "the loss of uneven load is one of whole sequences, of which ranks along ", axis,
                " hold parts; leave out one of them");
}

void Router::begin_run() {
  counts_.clear();
}

void Router::commit(const Step&) {
  if (!bias_) return;
  const at::NoGradGuard no_grad;
  const Tensor counts = counts_.sum(*mesh_);
  const Tensor delta = (counts.sum() - counts * options_.num_experts).sign().to(at::kFloat);
  bias_->value().add_(delta - delta.mean(), options_.balance_rate);
}

}  // namespace titan::nn
