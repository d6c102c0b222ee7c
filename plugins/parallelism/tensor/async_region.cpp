#include "async_region.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

namespace titan::tensor_parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kMostColumns = 4;

/// Carries the link through autograd's context.
struct LinkHolder : torch::CustomClassHolder {
  explicit LinkHolder(std::shared_ptr<PieceLink> held) : link(std::move(held)) {}
  std::shared_ptr<PieceLink> link;
};

void keep(AutogradContext* ctx, const std::shared_ptr<PieceLink>& link) {
  ctx->saved_data["link"] = c10::IValue::make_capsule(c10::make_intrusive<LinkHolder>(link));
}
PieceLink& kept_link(AutogradContext* ctx) {
  return *static_cast<LinkHolder*>(ctx->saved_data["link"].toCapsule().get())->link;
}

void check_differentiated_once() {
  TITAN_CHECK(!at::GradMode::is_enabled(), config,
              "asynchronous tensor parallelism cannot be differentiated twice: call backward "
              "without create_graph");
}

/// x (B, S/T, in) -> x of all ranks · weightᵀ (B, S, out) for each weight.
struct GatherLinear : torch::autograd::Function<GatherLinear> {
  template <class... Weights>
  static variable_list forward(AutogradContext* ctx, const Tensor& x,
                               const std::shared_ptr<PieceLink>& link, const Weights&... weights) {
    GatheredProducts gathered = gather_multiply(x, {weights.t()...}, *link);
    ctx->save_for_backward({weights..., gathered.whole});
    keep(ctx, link);
    return std::move(gathered.products);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once();
    variable_list weights = ctx->get_saved_variables();
    const Tensor whole = weights.back();
    weights.pop_back();
    variable_list out(2 + weights.size());  // of x, link and weights
    std::optional<ScatteredProduct> dx;
    if (ctx->needs_input_grad(0)) dx.emplace(grads, weights, kept_link(ctx));
    for (size_t i = 0; i < weights.size(); ++i)  // while the last pieces of dx are in flight
      if (ctx->needs_input_grad(i + 1)) out[i + 2] = ops::linear_grad_weight(grads[i], whole);
    if (dx) out[0] = dx->finish();
    return out;
  }
};

template <size_t... kIndex>
variable_list gather_linear(const Tensor& x, const std::shared_ptr<PieceLink>& link,
                            const std::vector<Tensor>& weights, std::index_sequence<kIndex...>) {
  return GatherLinear::apply(x, link, weights[kIndex]...);
}

/// Autograd functions accept tensors as single arguments only.
variable_list gather_linear(const Tensor& x, const std::shared_ptr<PieceLink>& link,
                            const std::vector<Tensor>& weights) {
  static_assert(kMostColumns == 4);
  switch (weights.size()) {
    case 1:
      return gather_linear(x, link, weights, std::make_index_sequence<1>());
    case 2:
      return gather_linear(x, link, weights, std::make_index_sequence<2>());
    case 3:
      return gather_linear(x, link, weights, std::make_index_sequence<3>());
    default:
      return gather_linear(x, link, weights, std::make_index_sequence<4>());
  }
}

/// x (B, S, in/T) -> this rank's part of the sequence of the sum over ranks of x · weightᵀ.
struct LinearScatter : torch::autograd::Function<LinearScatter> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const std::shared_ptr<PieceLink>& link) {
    ctx->save_for_backward({x, weight});
    keep(ctx, link);
    return ScatteredProduct({x}, {weight.t()}, *link).finish();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once();
    const variable_list saved = ctx->get_saved_variables();
    std::vector<Tensor> matrices;
    if (ctx->needs_input_grad(0)) matrices.push_back(saved[1]);
    const GatheredProducts gathered = gather_multiply(grads[0], matrices, kept_link(ctx));
    variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = gathered.products[0];
    if (ctx->needs_input_grad(1)) out[1] = ops::linear_grad_weight(gathered.whole, saved[0]);
    return out;
  }
};

/// One pass through the region: its input, and the products that its projections have not taken
/// yet.
class RegionPass {
 public:
  RegionPass(std::vector<nn::Parameter*> weights, std::shared_ptr<PieceLink> link)
      : weights_(std::move(weights)), link_(std::move(link)) {}

  void start(const Tensor& input) { input_ = input; }
  void end() {
    input_ = Tensor();
    products_.clear();
  }
  bool is_input(const Tensor& x) const { return input_.defined() && input_.is_same(x); }

  Tensor take_product(size_t column) {
    if (products_.empty() || !products_[column].defined()) gather();
    return std::exchange(products_[column], Tensor());
  }

 private:
  void gather() {
    std::vector<Tensor> values;
    for (nn::Parameter* weight : weights_) values.push_back(weight->value());
    products_ = gather_linear(input_, link_, values);
  }

  std::vector<nn::Parameter*> weights_;
  std::shared_ptr<PieceLink> link_;
  Tensor input_;
  variable_list products_;
};

class ColumnKernel final : public nn::LinearKernel {
 public:
  ColumnKernel(std::shared_ptr<RegionPass> pass, size_t column)
      : pass_(std::move(pass)), column_(column) {}

  Tensor matmul(const Tensor& x, nn::Parameter& weight) override {
    // deeper in the region the sequence is already whole
    return pass_->is_input(x) ? pass_->take_product(column_) : ops::linear(x, weight.value());
  }

 private:
  std::shared_ptr<RegionPass> pass_;
  size_t column_;
};

class RowKernel final : public nn::LinearKernel {
 public:
  explicit RowKernel(std::shared_ptr<PieceLink> link) : link_(std::move(link)) {}

  Tensor matmul(const Tensor& x, nn::Parameter& weight) override {
    return LinearScatter::apply(x, weight.value(), link_);
  }

 private:
  std::shared_ptr<PieceLink> link_;
};

}  // namespace

bool can_be_async(const RegionLayout& region) {
  const auto is_plain = [](nn::Linear* linear) { return linear->has_plain_kernel(); };
  // a bias would be added to a sum that is already cut
  const auto has_bias = [](nn::Linear* linear) { return linear->bias() != nullptr; };
  const bool fits = std::none_of(region.columns.begin(), region.columns.end(), has_bias) &&
                    std::none_of(region.rows.begin(), region.rows.end(), has_bias) &&
                    !region.has_whole_linears && region.rows.size() == 1 &&
                    !region.columns.empty() && region.columns.size() <= kMostColumns;
  if (!fits || (std::all_of(region.columns.begin(), region.columns.end(), is_plain) &&
                is_plain(region.rows.front())))
    return fits;
  static std::atomic<bool> was_said = false;
  if (!was_said.exchange(true))
    log::warn("a converter has replaced products in " + region.path +
              " and possibly elsewhere: tensor parallelism communicates before and after them, not "
              "overlapped as "
              "parallelism.enable_async_tensor_parallel requires");
  return false;
}

void make_async(const RegionLayout& region, const std::shared_ptr<PieceLink>& link) {
  std::vector<nn::Parameter*> weights;
  for (nn::Linear* linear : region.columns) weights.push_back(&linear->weight());
  const auto pass = std::make_shared<RegionPass>(std::move(weights), link);
  for (size_t i = 0; i < region.columns.size(); ++i)
    region.columns[i]->set_kernel("async tensor parallelism",
                                  std::make_unique<ColumnKernel>(pass, i));
  region.rows.front()->set_kernel("async tensor parallelism", std::make_unique<RowKernel>(link));
  region.module->wrap([pass, path = region.path](const Tensor& x, const Batch& batch,
                                                 const nn::Next& next) {
    struct End {
      RegionPass& pass;
      ~End() { pass.end(); }
    } end{*pass};
    pass->start(x);
    const Tensor y = next(x, batch);
    TITAN_CHECK(y.sizes() == x.sizes(), config, "the layer ", path, " made ", y.sizes(), " of ",
                x.sizes(),
                ": it does not pass its input directly to its projections, so they cannot gather "
                "it; set parallelism.enable_async_tensor_parallel = false");
    return y;
  });
}

}  // namespace titan::tensor_parallel
