#include "attention_inputs.h"

#include <array>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <titan/error.h>
#include <titan/nn/weight_gradients.h>
#include <titan/ops/fused.h>
#include <titan/ops/linear.h>
#include <titan/ops/mm.h>
#include <titan/ops/rope.h>
#include <torch/csrc/autograd/custom_function.h>

#include "products.h"

namespace titan::fused {
namespace {

using at::Tensor;
using nn::AttentionInputs;
using nn::AttentionInputWeights;
using nn::WeightGradientQueue;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// State for the backward, in addition to tensors.
struct ProjectedLayer : torch::CustomClassHolder {
  ProjectedLayer(const AttentionInputWeights& weights, int64_t head_dim)
      : weights(weights), head_dim(head_dim), queue(WeightGradientQueue::current()) {}
  AttentionInputWeights weights;
  int64_t head_dim;
  std::shared_ptr<WeightGradientQueue> queue;  // null: backward is not split
};

/// The columns of q, k and v as views of `all` (rows, sum of widths).
std::array<Tensor, 3> parts_of(const Tensor& all, const std::array<int64_t, 3>& widths) {
  return {all.narrow(1, 0, widths[0]), all.narrow(1, widths[0], widths[1]),
          all.narrow(1, widths[0] + widths[1], widths[2])};
}

/// (rows, heads · hd), rows spaced equally -> (B, S, heads, hd).
Tensor as_heads(const Tensor& part, int64_t batch, int64_t head_dim) {
  return part.unflatten(0, {batch, -1}).unflatten(2, {-1, head_dim});
}

struct Projections : torch::autograd::Function<Projections> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& wq,
                               const Tensor& wk, const Tensor& wv, const Tensor& cos,
                               const Tensor& sin, const std::optional<Tensor>& given_positions,
                               const AttentionInputWeights* weights, int64_t head_dim) {
    ctx->saved_data["layer"] =
        c10::IValue::make_capsule(c10::make_intrusive<ProjectedLayer>(*weights, head_dim));
    const Tensor positions = given_positions.value_or(Tensor());
    ctx->save_for_backward({x, wq, wk, wv, cos, sin, positions});
    const at::AutoDispatchBelowADInplaceOrView below;
    const std::array<int64_t, 3> widths = {wq.size(0), wk.size(0), wv.size(0)};
    const Tensor rows = as_matrix(x);
    const auto split = [&](const Tensor& all) {
      auto [q, k, v] = parts_of(all, widths);
      return variable_list{as_heads(q, x.size(0), head_dim), as_heads(k, x.size(0), head_dim),
                           as_heads(v, x.size(0), head_dim)};
    };
    const Operation operation = product_of(rows, widths[0] + widths[1] + widths[2]);
    return split(keepable(operation, [&] {  // with RoPE, so a kept result is not rotated twice
      const Tensor all = ops::mm(rows, at::cat({wq, wk, wv}).t());
      const variable_list heads = split(all);
      ops::rope_into(heads[0], heads[1], cos, sin, positions, /*inverse=*/false, heads[0],
                     heads[1]);
      return all;
    }));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    TITAN_CHECK(!at::GradMode::is_enabled(), config,
                "fused projections cannot be differentiated twice: call backward without "
                "create_graph");
    const variable_list saved = ctx->get_saved_variables();  // may run the layer again
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto held = ctx->saved_data["layer"].toCapsule();
    const auto& layer = static_cast<const ProjectedLayer&>(*held);
    const Tensor &x = saved[0], &wq = saved[1], &wk = saved[2], &wv = saved[3];
    const std::array<int64_t, 3> widths = {wq.size(0), wk.size(0), wv.size(0)};
    const Tensor rows = as_matrix(x);
    const Tensor all =
        at::empty({rows.size(0), widths[0] + widths[1] + widths[2]}, grads[0].options());
    const std::array<Tensor, 3> parts = parts_of(all, widths);
    const auto heads = [&](int i) { return as_heads(parts[i], x.size(0), layer.head_dim); };
    ops::rope_into(grads[0], grads[1], saved[4], saved[5], saved[6], /*inverse=*/true, heads(0),
                   heads(1));
    heads(2).copy_(grads[2]);

    variable_list out(9);
    if (ctx->needs_input_grad(0)) out[0] = with_rows_of(x, ops::mm(all, at::cat({wq, wk, wv})));
    give_weight_gradients(ctx, layer, {rows, all, widths}, out);
    return out;
  }

  struct Gradient {
    Tensor rows, all;  ///< x as a matrix, and the gradient of its product
    std::array<int64_t, 3> widths;
    /// Gradients of the three weights, as rows of one tensor.
    std::array<Tensor, 3> of_weights() const {
      const Tensor whole = ops::linear_grad_weight(all, rows);
      return {whole.narrow(0, 0, widths[0]), whole.narrow(0, widths[0], widths[1]),
              whole.narrow(0, widths[0] + widths[1], widths[2])};
    }
  };

  static void give_weight_gradients(AutogradContext* ctx, const ProjectedLayer& layer,
                                    const Gradient& gradient, variable_list& out) {
    nn::Parameter* const weights[3] = {&layer.weights.wq, &layer.weights.wk, &layer.weights.wv};
    bool needs_all = true;
    for (size_t i = 0; i < 3; ++i) needs_all = needs_all && ctx->needs_input_grad(i + 1);
    if (!needs_all) {  // some are frozen
      const std::array<Tensor, 3> parts = parts_of(gradient.all, gradient.widths);
      for (size_t i = 0; i < 3; ++i)
        if (ctx->needs_input_grad(i + 1))
          out[i + 1] = WeightGradientQueue::give_or_defer(
              layer.queue, *weights[i], [part = parts[i], rows = gradient.rows] {
                return ops::linear_grad_weight(part, rows);
              });
      return;
    }
    if (!layer.queue || !layer.queue->is_deferring()) {
      const std::array<Tensor, 3> shares = gradient.of_weights();
      for (size_t i = 0; i < 3; ++i) out[i + 1] = shares[i];
      return;
    }
    layer.queue->add([weights = layer.weights, gradient] {
      const at::NoGradGuard no_grad;
      const std::array<Tensor, 3> shares = gradient.of_weights();
      weights.wq.add_gradient(shares[0]);
      weights.wk.add_gradient(shares[1]);
      weights.wv.add_gradient(shares[2]);
    });
  }
};

class FusedInputs final : public nn::AttentionInputKernel {
 public:
  explicit FusedInputs(int64_t head_dim) : head_dim_(head_dim) {}

  AttentionInputs project(const Tensor& x, const AttentionInputWeights& w, nn::Rope* rope,
                          const Batch& batch) override {
    const Tensor &wq = w.wq.value(), &wk = w.wk.value(), &wv = w.wv.value();
    const nn::RopeTables tables = rope->tables_for(x, batch);
    const bool records_graph =
        at::GradMode::is_enabled() &&
        (x.requires_grad() || wq.requires_grad() || wk.requires_grad() || wv.requires_grad());
    if (records_graph) {
      std::optional<Tensor> positions;
      if (batch.positions.defined()) positions = batch.positions.expand({x.size(0), x.size(1)});
      const variable_list out =
          Projections::apply(x, wq, wk, wv, tables.cos, tables.sin, positions, &w, head_dim_);
      return {out[0], out[1], out[2]};
    }
    const auto heads = [&](const Tensor& projected) {
      return projected.view({x.size(0), x.size(1), -1, head_dim_});
    };
    const Tensor q = heads(ops::linear(x, wq)), k = heads(ops::linear(x, wk));
    auto [q_rotated, k_rotated] = ops::rope(q, k, tables.cos, tables.sin, batch.positions);
    return {q_rotated, k_rotated, heads(ops::linear(x, wv))};
  }

 private:
  int64_t head_dim_;
};

}  // namespace

std::unique_ptr<nn::AttentionInputKernel> make_attention_inputs(int64_t head_dim) {
  return std::make_unique<FusedInputs>(head_dim);
}

}  // namespace titan::fused
