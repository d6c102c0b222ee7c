// attention: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/attention.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/sigmoid.h>
#include <titan/recompute.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

double scale_of(const Tensor& q, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  TITAN_CHECK(
      q.dim() == 4 && k.dim() == 4 && v.dim() == 4 &&
          k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(0) == k.size(0) &&
          q.size(3) == k.size(3) && q.size(3) > 0 && v.size(3) > 0,
      config,
      "attention: q must be (B, H, S, hd), k (B, KV, Skv, hd) and v (B, KV, Skv, hdv), got ",
      q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  TITAN_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), config,
              "attention: q, k and v must have one dtype, got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
  TITAN_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, config, "attention: ", q.size(1),
              " query heads cannot share ", k.size(1), " key heads; use a multiple");
  TITAN_CHECK(k.size(2) > 0 || q.size(2) == 0, config, "attention: no keys for ", q.size(2),
              " queries");
  TITAN_CHECK(!options.causal || q.size(2) == k.size(2), config, "attention: causal over ",
              q.size(2), " queries needs as many keys, got ", k.size(2));
}

/// The heads with zeros behind them, up to `width` elements.
Tensor widened(const Tensor& heads, int64_t width) {
  return heads.size(3) == width ? heads : at::constant_pad_nd(heads, {0, width - heads.size(3)});
}
/// The first `width` elements of each head, over (B, S, heads, width) storage.
Tensor narrowed(const Tensor& heads, int64_t width) {
  if (heads.size(3) == width) return heads;
  return heads.narrow(3, 0, width).transpose(1, 2).contiguous().transpose(1, 2);
}
/// What the devices' loops know: one width. Zeros add nothing to a score and give outputs and
/// gradients that nobody reads.
int64_t common_width(const Tensor& q, const Tensor& v) {
  return std::max(q.size(3), v.size(3));
}

AttentionResult attention_on_device(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                    double scale) {
  static const auto operation = find_operation<AttentionForward>("titan::attention_forward");
  BelowAutograd guard;
  const int64_t width = common_width(q, v);
  auto [out, logsumexp] =
      operation.call(widened(q, width), widened(k, width), widened(v, width), causal, scale);
  return {narrowed(out, v.size(3)), logsumexp};
}

/// Products of (S, hd) with (hd, Skv) and of (S, Skv) with (Skv, hdv) per head, of which a causal
/// mask leaves half.
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

/// -inf as a number that can be subtracted from itself.
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
  check(q, k, v, options);
  const double scale = scale_of(q, options);
  if (records_graph({&q, &k, &v})) return Attention::apply(q, k, v, options.causal, scale);
  return attention_on_device(q, k, v, options.causal, scale).out;
}

AttentionResult attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const AttentionOptions& options) {
  check(q, k, v, options);
  return attention_on_device(q, k, v, options.causal, scale_of(q, options));
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
  check(q, k, v, options);
  const std::vector<int64_t> fitting = {q.size(0), q.size(1), q.size(2), v.size(3)};
  TITAN_CHECK(grad_out.sizes() == fitting && result.out.sizes() == fitting &&
                  result.logsumexp.sizes() == q.sizes().slice(0, 3),
              config, "attention_backward: gradient, output and logsumexp must fit q ", q.sizes(),
              " and v ", v.sizes(), ", got ", grad_out.sizes(), ", ", result.out.sizes(), " and ",
              result.logsumexp.sizes());
  return attention_backward_on_device(grad_out, q, k, v, result, options.causal,
                                      scale_of(q, options));
}

}  // namespace titan::ops
