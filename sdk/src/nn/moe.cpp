#include <titan/nn/moe.h>

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <titan/ops/swiglu.h>
#include <titan/ops/token_rows.h>

namespace titan::nn {

using at::Tensor;

GroupedLinear& GroupedExperts::add_projection(const std::string& name, std::vector<int64_t> shape,
                                              const Init& init) {
  add_parameter(name, std::move(shape), init);
  return add_module(name, std::make_unique<GroupedLinear>(shared_parameter(name)));
}

GroupedExperts::GroupedExperts(const MoeOptions& o)
    : w1_(add_projection("w1", {o.router.num_experts, o.hidden_dim, o.router.dim}, o.gate_init)),
      w2_(add_projection("w2", {o.router.num_experts, o.router.dim, o.hidden_dim}, o.output_init)),
      w3_(add_projection("w3", {o.router.num_experts, o.hidden_dim, o.router.dim}, o.output_init)) {
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
  return w2_(ops::swiglu(gate, w3_(rows, counts_)), counts_);
}

std::shared_ptr<Parameter> MixtureOfExperts::add_bias(const RouterOptions& options) {
  if (options.balance_rate == 0) return nullptr;
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

void MixtureOfExperts::set_dispatcher(std::string taker,
                                      std::unique_ptr<TokenDispatcher> dispatcher) {
  check_runs(taker, place());
  dispatcher_.replace(std::move(taker), std::move(dispatcher), place());
}

std::string MixtureOfExperts::computed_by() const {
  const std::string text = dispatcher_.takers().text();
  return text.empty() ? text : text + " dispatches tokens";
}

Tensor MixtureOfExperts::forward(const Tensor& x, const Batch& batch) {
  const Routing routing = router_.route(x, batch);
  const Tensor factors = weighs_inputs_ ? routing.weights : Tensor();
  const auto tokens =
      dispatcher_->dispatch(x.reshape({-1, x.size(-1)}), routing, factors);        // rows (n, D)
  const Tensor made = tokens->bring_back(experts_(tokens->rows, tokens->counts));  // (N k, D)
  const Tensor weights = weighs_inputs_ ? at::ones_like(routing.weights.detach()) : routing.weights;
  const Tensor y = ops::sum_of_slots(made, weights).view(x.sizes());
  return shared_ ? y + (*shared_)(x, batch) : y;
}

}  // namespace titan::nn
