#include <titan/nn/router.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/ops/linear.h>
#include <titan/recompute.h>

#include "router_losses.h"

namespace titan::nn {
namespace {

using at::Tensor;

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Throws if the options for groups of experts are invalid.
void check_groups(const RouterOptions& o) {
  if (o.num_groups == 0 && o.limited_groups == 0) return;
  const int64_t size = o.num_groups > 0 ? o.num_experts / o.num_groups : 0;
  TITAN_CHECK(
      o.num_groups > 0 && o.num_experts % o.num_groups == 0 && size >= 2 && o.limited_groups >= 1 &&
          o.limited_groups <= o.num_groups && o.top_k <= o.limited_groups * size,
      config, o.top_k, " of ", o.num_experts, " experts cannot be chosen from the best ",
      o.limited_groups, " of ", o.num_groups,
      " groups: groups must be equal in size (>= 2 experts), and the chosen groups must hold "
      "enough experts");
}

/// Multiplies in fp32, or in double for double.
class PreciseKernel final : public LinearKernel {
 public:
  Tensor matmul(const Tensor& x, Parameter& weight) override {
    const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
    return ops::linear(x.to(precise), weight.value().to(precise));
  }
};

/// experts (B, S, k) -> Routing::kept.
Tensor within_capacity(const Tensor& experts, const RouterOptions& o) {
  const at::NoGradGuard no_grad;
  const Tensor slots = experts.flatten(1);  // (B, S k)
  const int64_t rows = slots.size(0), length = slots.size(1);
  const int64_t capacity = static_cast<int64_t>(std::ceil(
      o.capacity_factor * static_cast<double>(length) / static_cast<double>(o.num_experts)));
  if (slots.is_meta())  // assumes an even load
    return at::empty({rows * std::min(length, capacity * o.num_experts)}, slots.options());
  // number of earlier tokens of its expert, for each slot
  const Tensor order = slots.argsort(/*stable=*/true, -1, /*descending=*/false);
  const Tensor sorted = slots.gather(-1, order);
  const Tensor counts = at::zeros({rows, o.num_experts}, slots.options())
                            .scatter_add_(-1, slots, at::ones_like(slots));
  const Tensor first = counts.cumsum(-1) - counts;
  const Tensor before = at::arange(length, slots.options()) - first.gather(-1, sorted);
  const Tensor is_kept = at::empty_like(slots, at::kBool).scatter_(-1, order, before < capacity);
  return is_kept.flatten().nonzero().squeeze(1);
}

/// experts (B, S, k) -> number of choices of each expert, int64 (E). Choices of tokens in
/// `is_left_out`, bool (B, S), do not count; undefined: all count.
Tensor counts_of(const Tensor& experts, int64_t num_experts, const Tensor& is_left_out = {}) {
  const Tensor flat = experts.flatten();
  const Tensor ones =
      is_left_out.defined()
          ? is_left_out.logical_not().to(at::kLong).unsqueeze(-1).expand_as(experts).flatten()
          : at::ones_like(flat);
  return at::zeros({num_experts}, flat.options()).scatter_add_(0, flat, ones);
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
  Tensor forward(const Tensor& scores, const Batch& batch) override {
    const at::NoGradGuard no_grad;
    return keepable({.kind = Operation::Kind::routing}, [&] {
      return options_.forces_balance ? in_turn(scores, batch.places) : best(scores);
    });
  }

 private:
  /// Sorts, because topk picks arbitrarily among equal values.
  Tensor best(const Tensor& scores) const {
    Tensor values = bias_ ? scores.detach() + bias_->value() : scores.detach();
    if (options_.num_groups > 0) values = values.masked_fill(is_outside(values), kNever);
    return first_of(values, options_.top_k).contiguous();
  }
  /// (B, S, E): whether an expert's group is not among the best.
  Tensor is_outside(const Tensor& values) const {
    const Tensor groups = values.unflatten(-1, {options_.num_groups, -1});  // (B, S, G, E / G)
    const int64_t counted = options_.group_score == GroupScore::best_two ? 2 : 1;
    const Tensor worth = std::get<0>(groups.topk(counted, -1)).sum(-1);
    return at::ones_like(worth, at::kBool)
        .scatter_(-1, first_of(worth, options_.limited_groups), false)
        .unsqueeze(-1)
        .expand_as(groups)
        .flatten(-2);
  }
  static Tensor first_of(const Tensor& values, int64_t count) {
    return std::get<1>(values.sort(/*stable=*/true, -1, /*descending=*/true)).narrow(-1, 0, count);
  }
  Tensor in_turn(const Tensor& scores, const TokenPlaces& places) const {
    const Tensor tokens = places.numbers(scores.size(0), scores.size(1), scores.device());
    const Tensor choices = at::arange(options_.top_k, tokens.options());
    return (tokens.unsqueeze(-1) * options_.top_k + choices).remainder(options_.num_experts);
  }

  RouterOptions options_;
  std::shared_ptr<Parameter> bias_;
};

Router::Router(const RouterOptions& options, std::shared_ptr<Parameter> bias)
    : options_(options),
      bias_(std::move(bias)),
      gate_(add_module("gate",
                       std::make_unique<Linear>(
                           options.dim, options.num_experts, WeightLayout::replicated, options.init,
                           options.has_bias ? std::optional(Init::constant(0)) : std::nullopt))),
      choice_(add_module("choice", std::make_unique<Choice>(options, bias_))) {
  TITAN_CHECK(options.top_k >= 1 && options.top_k <= options.num_experts, config,
              "a token cannot go to ", options.top_k, " of ", options.num_experts, " experts");
  TITAN_ASSERT((bias_ != nullptr) == options.is_biased(),
               "a bias must be given if and only if the options ask for one");
  check_groups(options);
  if (options.is_float32)
    gate_.set_kernel("a router in float32", std::make_unique<PreciseKernel>());
}

Router::~Router() = default;

at::Tensor Router::forward(const Tensor& x, const Batch& batch) {
  const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
  Tensor logits = gate_(x, batch).to(precise);
  if (options_.z_loss != 0 && batch.auxiliary_losses)
    logits = with_auxiliary_loss(logits, z_loss_sum(logits, batch) * options_.z_loss, batch);
  return options_.score == RouterScore::softmax ? logits.softmax(-1) : logits.sigmoid();
}

Routing Router::route(const Tensor& x, const Batch& batch) {
  Tensor scores = (*this)(x, batch);
  const Tensor experts = choice_(scores, batch), is_padding = batch.padding_of(x.size(1));
  const Tensor counts = counts_of(experts, options_.num_experts);
  if (options_.balance_rate != 0)
    counts_.add(
        is_padding.defined() ? counts_of(experts, options_.num_experts, is_padding) : counts,
        batch);
  if (options_.balance_loss != 0)
    scores = with_auxiliary_loss(
        scores, balance_loss_sum(scores, experts, is_padding) * options_.balance_loss, batch);
  Tensor weights = scores.gather(-1, experts);
  if (options_.normalises) weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
  if (options_.scale != 1) weights = weights * options_.scale;
  Routing routing = {
      .experts = experts.flatten(0, -2), .weights = weights.flatten(0, -2), .counts = counts};
  if (options_.capacity_factor > 0) routing.kept = within_capacity(experts, options_);
  return routing;
}

void Router::connect(const dist::Mesh& mesh) {
  mesh_ = &mesh;
  for (const char* axis : {"cp", "tp"}) {
    if (mesh.group(axis).size() == 1) continue;
    TITAN_CHECK(options_.balance_loss == 0, config,
                "the load balance loss needs whole sequences, which ranks along ", axis,
                " split; leave out one of them");
    TITAN_CHECK(options_.capacity_factor == 0, config,
                "expert capacity needs whole sequences, which ranks along ", axis,
                " split; leave out one of them");
  }
}

void Router::begin_run() {
  counts_.clear();
}

void Router::commit(const Step&) {
  if (options_.balance_rate == 0) return;
  const at::NoGradGuard no_grad;
  const Tensor counts = counts_.sum(*mesh_);
  const Tensor delta = (counts.sum() - counts * options_.num_experts).sign().to(at::kFloat);
  bias_->value().add_(delta - delta.mean(), options_.balance_rate);
}

}  // namespace titan::nn
