// titan/ops without data: shapes, dtypes, layouts and the memory that the real operations hold at
// their peak, for models on the meta device and for memory estimates.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "chunks.h"
#include "signatures.h"

namespace titan::ops {
namespace {

at::ScalarType computed_in(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor contiguous_like(const Tensor& x) {
  return at::empty(x.sizes(), x.options());
}

/// (B, heads, S, hd) over (B, S, heads, hd) storage.
Tensor heads_like(const Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

std::tuple<Tensor, Tensor> rms_norm_forward_on_meta(const Tensor& x, const Tensor& weight,
                                                    double eps) {
  const int64_t rows = c10::multiply_integers(x.sizes().slice(0, x.dim() - 1));
  return {contiguous_like(x), at::empty({rows}, x.options().dtype(computed_in(x)))};
}

std::tuple<Tensor, Tensor> rms_norm_backward_on_meta(const Tensor& dy, const Tensor& x,
                                                     const Tensor& weight, const Tensor& rstd) {
  return {contiguous_like(x), contiguous_like(weight)};
}

Tensor swiglu_forward_on_meta(const Tensor& gate, const Tensor& up) {
  return contiguous_like(gate);
}

std::tuple<Tensor, Tensor> swiglu_backward_on_meta(const Tensor& dout, const Tensor& gate,
                                                   const Tensor& up) {
  return {contiguous_like(gate), contiguous_like(up)};
}

std::tuple<Tensor, Tensor> rope_rotate_on_meta(const Tensor& q, const Tensor& k, const Tensor& cos,
                                               const Tensor& sin,
                                               const std::optional<Tensor>& positions,
                                               bool inverse) {
  return {contiguous_like(q), contiguous_like(k)};
}

std::tuple<Tensor, Tensor> attention_forward_on_meta(const Tensor& q, const Tensor& k,
                                                     const Tensor& v, bool causal, double scale) {
  const Tensor logsumexp = at::empty(q.sizes().slice(0, 3), q.options().dtype(computed_in(q)));
  return {heads_like(q), logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward_on_meta(const Tensor& dout, const Tensor& q,
                                                              const Tensor& k, const Tensor& v,
                                                              const Tensor& out,
                                                              const Tensor& logsumexp, bool causal,
                                                              double scale) {
  return {heads_like(q), heads_like(k), heads_like(v)};
}

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_on_meta(const Tensor& x,
                                                                const Tensor& weight,
                                                                const Tensor& labels, bool needs_dx,
                                                                bool needs_dweight) {
  const ChunkLoss in_place = [](const Tensor& logits, const Tensor&, bool) {
    return at::empty({}, logits.options().dtype(at::kDouble));
  };
  auto [loss, dx, dweight] =
      run_chunks(x, weight, labels, logits_chunk_rows(x.size(0), weight.size(0)), in_place,
                 needs_dx, needs_dweight);
  return {loss, dx, dweight};
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward_on_meta(const Tensor& x,
                                                                const Tensor& delta,
                                                                const Tensor& weight, double eps) {
  auto [y, rstd] = rms_norm_forward_on_meta(x, weight, eps);
  return {contiguous_like(x), y, rstd};
}

std::tuple<Tensor, Tensor> add_rms_norm_backward_on_meta(const Tensor& dy, const Tensor& dsum,
                                                         const Tensor& sum, const Tensor& weight,
                                                         const Tensor& rstd) {
  return rms_norm_backward_on_meta(dy, sum, weight, rstd);
}

void swiglu_backward_in_place_on_meta(const Tensor& dout, const Tensor& gate, const Tensor& up) {}

void rope_into_on_meta(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
                       const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
                       const Tensor& k_out) {}

Tensor embedding_forward_on_meta(const Tensor& weight, const Tensor& tokens) {
  std::vector<int64_t> shape = tokens.sizes().vec();
  shape.push_back(weight.size(1));
  return at::empty(shape, weight.options());
}

Tensor embedding_backward_on_meta(const Tensor& dout, const Tensor& tokens, int64_t num_rows) {
  return at::empty({num_rows, dout.size(-1)}, dout.options());
}

Tensor grouped_mm_on_meta(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  return at::empty({x.size(0), weight.size(2)}, x.options());
}

Tensor grouped_mm_weight_grad_on_meta(const Tensor& grad, const Tensor& x, at::IntArrayRef rows) {
  return at::empty({static_cast<int64_t>(rows.size()), grad.size(1), x.size(1)}, grad.options());
}

}  // namespace

TORCH_LIBRARY_IMPL(titan, Meta, m) {
  m.impl("rms_norm_forward", TORCH_FN(rms_norm_forward_on_meta));
  m.impl("rms_norm_backward", TORCH_FN(rms_norm_backward_on_meta));
  m.impl("swiglu_forward", TORCH_FN(swiglu_forward_on_meta));
  m.impl("swiglu_backward", TORCH_FN(swiglu_backward_on_meta));
  m.impl("rope_rotate", TORCH_FN(rope_rotate_on_meta));
  m.impl("attention_forward", TORCH_FN(attention_forward_on_meta));
  m.impl("attention_backward", TORCH_FN(attention_backward_on_meta));
  m.impl("linear_cross_entropy", TORCH_FN(linear_cross_entropy_on_meta));
  m.impl("embedding_forward", TORCH_FN(embedding_forward_on_meta));
  m.impl("add_rms_norm_forward", TORCH_FN(add_rms_norm_forward_on_meta));
  m.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward_on_meta));
  m.impl("swiglu_backward_in_place", TORCH_FN(swiglu_backward_in_place_on_meta));
  m.impl("rope_into", TORCH_FN(rope_into_on_meta));
  m.impl("embedding_backward", TORCH_FN(embedding_backward_on_meta));
  m.impl("grouped_mm", TORCH_FN(grouped_mm_on_meta));
  m.impl("grouped_mm_weight_grad", TORCH_FN(grouped_mm_weight_grad_on_meta));
}

}  // namespace titan::ops
