// attention: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/attention.h>

#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/sigmoid.h>
#include <titan/recompute.h>

#include "attention_shapes.h"
#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

AttentionResult attention_on_device(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                    double scale) {
  static const auto operation = find_operation<AttentionForward>("titan::attention_forward");
  BelowAutograd guard;
  const int64_t width = common_width(q, v);
  auto [out, logsumexp] =
      operation.call(widened(q, width), widened(k, width), widened(v, width), causal, scale);
  return {narrowed(out, v.size(3)), logsumexp};
}

/// Products of (S, hd) with (hd, Skv) and of (S, Skv) with (Skv, hdv) per head; a causal mask
/// halves them.
Operation as_operation(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const double pairs = static_cast<double>(q.size(0) * q.size(1)) * static_cast<double>(q.size(2)) *
                       static_cast<double>(k.size(2));
  const double flops = 2 * pairs * static_cast<double>(q.size(3) + v.size(3));
  return {.kind = Operation::Kind::attention, .flops = causal ? flops / 2 : flops};
}

AttentionGradients attention_backward_on_device(const Tensor& dout, const Tensor& q,
                                                const Tensor& k, const Tensor& v,
                                                const AttentionResult& result, bool causal,
                                                double scale) {
  static const auto operation = find_operation<AttentionBackward>("titan::attention_backward");
  BelowAutograd guard;
  const int64_t width = common_width(q, v);
  auto [dq, dk, dv] =
      operation.call(widened(dout, width), widened(q, width), widened(k, width), widened(v, width),
                     widened(result.out, width), result.logsumexp, causal, scale);
  return {narrowed(dq, q.size(3)), narrowed(dk, q.size(3)), narrowed(dv, v.size(3))};
}

/// Replaces -inf by a number that can be subtracted from itself.
Tensor finite(const Tensor& logsumexp) {
  return logsumexp.clamp_min(std::numeric_limits<float>::lowest() / 4);
}

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        bool causal, double scale) {
    const AttentionResult result = keepable_pair<AttentionResult>(
        as_operation(q, k, v, causal), [&] { return attention_on_device(q, k, v, causal, scale); });
    ctx->save_for_backward({q, k, v, result.out, result.logsumexp});
    ctx->saved_data["causal"] = causal;
    ctx->saved_data["scale"] = scale;
    return result.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("attention");
    const variable_list saved = ctx->get_saved_variables();
    AttentionGradients d = attention_backward_on_device(
        grads[0], saved[0], saved[1], saved[2], {saved[3], saved[4]},
        ctx->saved_data["causal"].toBool(), ctx->saved_data["scale"].toDouble());
    return {d.q, d.k, d.v, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  check_attention(q, k, v, options.causal);
  const double scale = scale_of(q, options.scale);
  if (records_graph({&q, &k, &v})) return Attention::apply(q, k, v, options.causal, scale);
  return attention_on_device(q, k, v, options.causal, scale).out;
}

AttentionResult attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const AttentionOptions& options) {
  check_attention(q, k, v, options.causal);
  return attention_on_device(q, k, v, options.causal, scale_of(q, options.scale));
}

void merge_attention(const AttentionResult& into, const AttentionResult& further) {
  const Tensor weight =
      at::sigmoid(finite(further.logsumexp) - finite(into.logsumexp)).unsqueeze(-1);
  into.out.lerp_(further.out.to(into.out.scalar_type()), weight.to(into.out.scalar_type()));
  into.logsumexp.copy_(at::logaddexp(into.logsumexp, further.logsumexp));
}

AttentionGradients attention_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const AttentionResult& result,
                                      const AttentionOptions& options) {
  check_attention(q, k, v, options.causal);
  const std::vector<int64_t> fitting = {q.size(0), q.size(1), q.size(2), v.size(3)};
  TITAN_CHECK(grad_out.sizes() == fitting && result.out.sizes() == fitting &&
                  result.logsumexp.sizes() == q.sizes().slice(0, 3),
              config, "attention_backward: gradient, output and logsumexp must fit q ", q.sizes(),
              " and v ", v.sizes(), ", got ", grad_out.sizes(), ", ", result.out.sizes(), " and ",
              result.logsumexp.sizes());
  return attention_backward_on_device(grad_out, q, k, v, result, options.causal,
                                      scale_of(q, options.scale));
}

}  // namespace titan::ops
