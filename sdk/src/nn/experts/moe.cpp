#include <titan/nn/moe.h>

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <titan/ops/swiglu.h>
#include <titan/ops/token_rows.h>

namespace titan::nn {

using at::Tensor;

GroupedLinear& GroupedExperts::add_projection(const std::string& name,
                                              const std::vector<int64_t>& shape, const Init& init,
                                              bool has_bias) {
  add_parameter(name, shape, init);
  const auto weight = shared_parameter(name);
  if (!has_bias) return add_module(name, std::make_unique<GroupedLinear>(weight));
  add_parameter(name + "_bias", {shape[0], shape[1]}, init);
  return add_module(name,
                    std::make_unique<GroupedLinear>(weight, shared_parameter(name + "_bias")));
}

GroupedExperts::GroupedExperts(const MoeOptions& o)
    : clamped_(o.clamped),
      w1_(add_projection("w1", {o.router.num_experts, o.hidden_dim, o.router.dim}, o.gate_init,
                         o.has_biases)),
      w2_(add_projection("w2", {o.router.num_experts, o.router.dim, o.hidden_dim}, o.output_init,
                         o.has_biases)),
      w3_(add_projection("w3", {o.router.num_experts, o.hidden_dim, o.router.dim}, o.output_init,
                         o.has_biases)) {}

std::vector<Parameter*> GroupedExperts::stacks() {
  std::vector<Parameter*> found;
  for (GroupedLinear* product : projections())
    product->visit_modules([&](const std::string&, Module& module) {
      auto* layer =
          dynamic_cast<GroupedLinear*>(&module);  // the layer itself or one attached to it
      if (!layer) return;
      found.push_back(&layer->weight());
      if (layer->bias()) found.push_back(layer->bias());
    });
  return found;
}

GroupedExperts::~GroupedExperts() = default;

Tensor GroupedExperts::operator()(const Tensor& rows, at::IntArrayRef counts) {
  const at::IntArrayRef outer = std::exchange(counts_, counts);
  Tensor out = Module::operator()(rows, Batch());
  counts_ = outer;
  return out;
}

Tensor GroupedExperts::forward(const Tensor& rows, const Batch&) {
  const Tensor gate = w1_(rows, counts_);  // in this order on every compiler
  const Tensor up = w3_(rows, counts_);
  return w2_(clamped_ ? ops::clamped_swiglu(gate, up, *clamped_) : ops::swiglu(gate, up), counts_);
}

std::shared_ptr<Parameter> MixtureOfExperts::add_bias(const RouterOptions& options) {
  if (!options.is_biased()) return nullptr;
  add_state("expert_bias", {options.num_experts}, Init::constant(0));
  return shared_parameter("expert_bias");
}

MixtureOfExperts::MixtureOfExperts(const MoeOptions& options)
    : weighs_inputs_(options.weighs_inputs),
      router_(
          add_module("router", std::make_unique<Router>(options.router, add_bias(options.router)))),
      experts_(add_module("experts", std::make_unique<GroupedExperts>(options))),
      dispatcher_(make_local_dispatcher()) {
  if (options.num_shared_experts > 0)
    shared_ = &add_module("shared_experts",
                          std::make_unique<FeedForward>(FeedForwardOptions{
                              .dim = options.router.dim,
                              .hidden_dim = options.hidden_dim * options.num_shared_experts,
                              .gate_init = options.gate_init,
                              .output_init = options.output_init}));
}
MixtureOfExperts::~MixtureOfExperts() = default;

std::string MixtureOfExperts::place() const {
  const std::string& name = router_.gate().weight().name();  // "layers.0.moe.router.gate.weight"
  const size_t end = name.rfind(".router.gate.weight");
  return end == std::string::npos ? "a mixture of experts" : "'" + name.substr(0, end) + "'";
}

void MixtureOfExperts::set_dispatcher(std::string owner,
                                      std::unique_ptr<TokenDispatcher> dispatcher) {
  check_runs(owner, place());
  dispatcher_.replace(std::move(owner), std::move(dispatcher), place());
}

std::string MixtureOfExperts::computed_by() const {
  const std::string text = dispatcher_.owners().text();
  return text.empty() ? text : text + " dispatches tokens";
}

namespace {

/// (count, D) with row i of `rows` at index numbers[i], zeros elsewhere.
Tensor rows_among(int64_t count, const Tensor& rows, const Tensor& numbers) {
  const Tensor zeros = at::zeros({count, rows.size(1)}, rows.options());
  return rows.is_meta() ? zeros.scatter(0, numbers.unsqueeze(1).expand_as(rows), rows)
                        : zeros.index_copy(0, numbers, rows);
}

/// The choices that were not dropped, each as a token of its own with one expert: dropped ones are
/// neither sent nor computed, with any dispatcher.
class KeptTokens final : public DispatchedTokens {
 public:
  KeptTokens(std::unique_ptr<DispatchedTokens> inner, Tensor kept)
      : inner_(std::move(inner)), kept_(std::move(kept)) {
    rows = inner_->rows;
    counts = inner_->counts;
  }
  Tensor combine(const Tensor& made, const Tensor& weights) override {
    const Tensor own = inner_->combine(made, at::ones({kept_.numel(), 1}, weights.options()));
    return ops::sum_of_slots(rows_among(weights.numel(), own, kept_), weights);
  }

 private:
  std::unique_ptr<DispatchedTokens> inner_;
  Tensor kept_;
};

std::unique_ptr<DispatchedTokens> dispatch(TokenDispatcher& dispatcher, const Tensor& x,
                                           const Routing& routing, const Tensor& factors,
                                           const TokenCopies& copies) {
  if (!routing.kept.defined()) return dispatcher.dispatch(x, routing, factors, copies);
  const Tensor& kept = routing.kept;
  const auto of_kept = [&](const Tensor& by_slot) { return ops::rows_at(by_slot, kept); };
  const Tensor every_slot = at::arange(routing.experts.numel(), kept.options());
  const Tensor experts = of_kept(routing.experts.flatten());
  const Routing own = {
      .experts = experts.unsqueeze(1),
      .weights = of_kept(routing.weights.flatten()).unsqueeze(1),
      .counts = at::zeros_like(routing.counts).scatter_add_(0, experts, at::ones_like(experts))};
  return std::make_unique<KeptTokens>(
      dispatcher.dispatch(of_kept(ops::rows_of_slots(x, every_slot)), own,
                          factors.defined() ? of_kept(factors.flatten()).unsqueeze(1) : factors,
                          copies),
      kept);
}

}  // namespace

Tensor MixtureOfExperts::forward(const Tensor& x, const Batch& batch) {
  const Routing routing = router_.route(x, batch);
  const Tensor factors = weighs_inputs_ ? routing.weights : Tensor();
  const auto tokens = dispatch(*dispatcher_, x.reshape({-1, x.size(-1)}), routing, factors,
                               batch.copies);  // rows (n, D)
  const Tensor made = experts_(tokens->rows, tokens->counts);
  const Tensor weights = weighs_inputs_ ? at::ones_like(routing.weights.detach()) : routing.weights;
  const Tensor y = tokens->combine(made, weights).view(x.sizes());
  return shared_ ? y + (*shared_)(x, batch) : y;
}

}  // namespace titan::nn
