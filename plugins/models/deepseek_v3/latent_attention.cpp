#include "latent_attention.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>

namespace titan::deepseek_v3 {
namespace {

using at::Tensor;
using nn::WeightLayout;

/// (B, S, n * width) -> (B, S, n, width). Sizes come from the projection, because tensor
/// parallelism may gather the sequence inside it.
Tensor as_heads(const Tensor& projected, int64_t width) {
  return projected.view({projected.size(0), projected.size(1), -1, width});
}

/// (..., 2j + r) -> (..., r * width / 2 + j).
Tensor half_split(const Tensor& pairs) {
  return pairs.unflatten(-1, {-1, 2}).transpose(-1, -2).flatten(-2);
}

}  // namespace

nn::Linear& LatentAttention::add_projection(const char* name, int64_t in, int64_t out,
                                            WeightLayout layout) {
  const nn::Init& init = layout == WeightLayout::row ? options_.output_init : options_.input_init;
  return add_module(name, std::make_unique<nn::Linear>(in, out, layout, init));
}

nn::RmsNorm& LatentAttention::add_norm(const char* name, int64_t width) {
  return add_module(name, std::make_unique<nn::RmsNorm>(width, options_.norm_eps));
}

LatentAttention::LatentAttention(const LatentAttentionOptions& options,
                                 std::shared_ptr<nn::Rope> rope)
    : options_(options), rope_(std::move(rope)), core_(options.scale) {
  const LatentAttentionOptions& o = options_;
  const int64_t q_width = o.num_heads * (o.nope_dim + o.rope_dim);
  if (o.q_rank == 0) {
    wq_ = &add_projection("wq", o.dim, q_width, WeightLayout::column);
  } else {
    wq_a_ = &add_projection("wq_a", o.dim, o.q_rank, WeightLayout::replicated);
    q_norm_ = &add_norm("q_norm", o.q_rank);
    wq_b_ = &add_projection("wq_b", o.q_rank, q_width, WeightLayout::column);
  }
  wkv_a_ = &add_projection("wkv_a", o.dim, o.kv_rank + o.rope_dim, WeightLayout::replicated);
  kv_norm_ = &add_norm("kv_norm", o.kv_rank);
  wkv_b_ = &add_projection("wkv_b", o.kv_rank, o.num_heads * (o.nope_dim + o.value_dim),
                           WeightLayout::column);
  wo_ = &add_projection("wo", o.num_heads * o.value_dim, o.dim, WeightLayout::row);
  set_region(nn::Region::gathered_to_partial);
}

int64_t LatentAttention::num_heads() const {
  return wkv_b_->weight().global_shape()[0] / (options_.nope_dim + options_.value_dim);
}

LatentAttention::Projected LatentAttention::project(const Tensor& x, const Batch& batch) {
  const int64_t nope = options_.nope_dim, rope = options_.rope_dim, rank = options_.kv_rank;
  const Tensor flat_q =
      wq_ ? (*wq_)(x, batch) : (*wq_b_)((*q_norm_)((*wq_a_)(x, batch), batch), batch);
  const Tensor q = as_heads(flat_q, nope + rope), kv = (*wkv_a_)(x, batch);
  auto [q_rope, k_rope] = rope_->rotate(half_split(q.narrow(-1, nope, rope)),
                                        half_split(kv.narrow(-1, rank, rope)).unsqueeze(2), batch);
  return {.q_nope = q.narrow(-1, 0, nope),
          .q_rope = q_rope,
          .latent = (*kv_norm_)(kv.narrow(-1, 0, rank), batch),
          .k_rope = k_rope};
}

Tensor LatentAttention::attend_heads(const Projected& projected, const Batch& batch) {
  const int64_t nope = options_.nope_dim, width = options_.value_dim;
  const Tensor kv = as_heads((*wkv_b_)(projected.latent, batch), nope + width);
  const Tensor k_rope = projected.k_rope.expand({-1, -1, kv.size(2), -1});
  const Tensor q = at::cat({projected.q_nope, projected.q_rope}, -1),
               k = at::cat({kv.narrow(-1, 0, nope), k_rope}, -1), v = kv.narrow(-1, nope, width);
  return core_.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch)
      .transpose(1, 2)
      .flatten(2);
}

/// q · (W_k c) = (W_kᵀ q) · c, and Σ p (W_v c) = W_v Σ p c: all heads attend to the latents c.
Tensor LatentAttention::attend_latents(const Projected& projected, const Batch& batch) {
  const Tensor& latent = projected.latent;  // (B, S, rank)
  const Tensor by_head = wkv_b_->weight()
                             .value()
                             .to(latent.scalar_type())
                             .view({-1, options_.nope_dim + options_.value_dim, options_.kv_rank});
  const Tensor of_keys = by_head.narrow(1, 0, options_.nope_dim);  // (heads, nope, rank)
  const Tensor of_values = by_head.narrow(1, options_.nope_dim, options_.value_dim);

  const Tensor absorbed = at::matmul(projected.q_nope.transpose(1, 2), of_keys);
  const Tensor q = at::cat({absorbed, projected.q_rope.transpose(1, 2)}, -1);
  const Tensor k = at::cat({latent.unsqueeze(2), projected.k_rope}, -1).transpose(1, 2);
  const Tensor out = core_.attend(q, k, latent.unsqueeze(1), batch);  // (B, heads, S, rank)
  return at::matmul(out, of_values.transpose(1, 2)).transpose(1, 2).flatten(2);
}

Tensor LatentAttention::forward(const Tensor& x, const Batch& batch) {
  const Projected projected = project(x, batch);
  const bool keeps_latents = batch.kv_cache && wkv_b_->has_plain_kernel();
  return (*wo_)(keeps_latents ? attend_latents(projected, batch) : attend_heads(projected, batch),
                batch);
}

}  // namespace titan::deepseek_v3
