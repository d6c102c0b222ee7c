// The fused operations of a layer: norm, SwiGLU, rotary positions.
#include <limits>

#include <ATen/ops/empty.h>

#include "fused_ops.h"
#include "launch.h"
#include "rms_norm.h"
#include "rope.h"
#include "spans.h"
#include "swiglu.h"

namespace titan::cuda::fused {
namespace {

/// Blocks that share the rows of a norm's gradient: four for each of 128 multiprocessors, about the
/// capacity of most GPUs. The same number on every GPU, so that all add in the same order.
constexpr int64_t kMostPartials = 512;

/// The weight, in fp32 if its dtype is not that of x.
Tensor weight_for(const Tensor& weight, const Tensor& x) {
  const bool fits = weight.scalar_type() == x.scalar_type();
  return (fits ? weight : weight.to(at::kFloat)).contiguous();
}

/// Calls use(T{}, W{}) with the types of rows of x and of this weight.
template <class Use>
void with_types(const Tensor& x, const Tensor& weight, const Use& use) {
  with_type(x.scalar_type(), [&](auto row) {
    using T = decltype(row);
    if (weight.scalar_type() == x.scalar_type())
      use(T{}, T{});
    else
      use(T{}, float{});
  });
}

bool rows_are_aligned(const Tensor& x, int64_t dim) {
  return has_aligned_rows(x, dim);
}

struct SumAndNorm {
  Tensor sum, y, rstd;
};

/// `residual` undefined: nothing is added, and `sum` stays undefined.
SumAndNorm norm(const Tensor& x_in, const Tensor& residual_in, const Tensor& weight_in,
                double eps) {
  const Tensor x = x_in.contiguous(), weight = weight_for(weight_in, x);
  const Tensor residual = residual_in.defined() ? residual_in.contiguous() : Tensor();
  const int64_t dim = x.size(-1), rows = dim ? x.numel() / dim : 0;
  SumAndNorm out;
  out.y = at::empty(x.sizes(), x.options());
  if (residual.defined()) out.sum = at::empty(x.sizes(), x.options());
  out.rstd = at::empty({rows}, x.options().dtype(at::kFloat));
  const bool is_aligned = rows_are_aligned(x, dim) && has_aligned_rows(weight, 0) &&
                          (!residual.defined() || has_aligned_rows(residual, 0));
  with_types(x, weight, [&](auto row, auto w) {
    using T = decltype(row);
    using W = decltype(w);
    launch(RmsNormForward<T, W>{.x = span_of<const T>(x),
                                .residual = span_of<const T>(residual),
                                .weight = span_of<const W>(weight),
                                .sum = span_of<T>(out.sum),
                                .y = span_of<T>(out.y),
                                .rstd = span_of<float>(out.rstd),
                                .dim = dim,
                                .eps = static_cast<float>(eps),
                                .is_aligned = is_aligned},
           rows);
  });
  return out;
}

std::tuple<Tensor, Tensor> norm_backward(const Tensor& dy_in, const Tensor& dsum_in,
                                         const Tensor& x_in, const Tensor& weight_in,
                                         const Tensor& rstd) {
  const Tensor dy = dy_in.contiguous(), x = x_in.contiguous(), weight = weight_for(weight_in, x);
  const Tensor dsum = dsum_in.defined() ? dsum_in.contiguous() : Tensor();
  const int64_t dim = x.size(-1), rows = dim ? x.numel() / dim : 0;
  const int64_t rows_per_block = std::max<int64_t>(1, blocks_for(rows, kMostPartials));
  const int64_t blocks = blocks_for(rows, rows_per_block);
  const Tensor dx = at::empty(x.sizes(), x.options());
  const Tensor partial = at::empty({blocks, dim}, x.options().dtype(at::kFloat));
  const Tensor dweight = at::empty({dim}, weight.options());
  const bool is_aligned = rows_are_aligned(x, dim) && has_aligned_rows(dy, 0) &&
                          has_aligned_rows(weight, 0) &&
                          (!dsum.defined() || has_aligned_rows(dsum, 0));
  with_types(x, weight, [&](auto row, auto w) {
    using T = decltype(row);
    using W = decltype(w);
    launch(RmsNormBackward<T, W>{.dy = span_of<const T>(dy),
                                 .x = span_of<const T>(x),
                                 .dsum = span_of<const T>(dsum),
                                 .weight = span_of<const W>(weight),
                                 .rstd = span_of<const float>(rstd),
                                 .dx = span_of<T>(dx),
                                 .partial = span_of<float>(partial),
                                 .rows = rows,
                                 .dim = dim,
                                 .rows_per_block = rows_per_block,
                                 .is_aligned = is_aligned},
           blocks);
    launch(SumRows<W>{.partial = span_of<const float>(partial),
                      .out = span_of<W>(dweight),
                      .rows = blocks,
                      .columns = dim},
           blocks_for(dim, grid::kWarp));
  });
  return {dx, dweight.to(weight_in.scalar_type())};
}

/// x as a matrix with contiguous columns: a view if its strides allow it, else a copy.
Tensor as_rows(const Tensor& x) {
  const int64_t columns = x.size(-1);
  const bool is_view = x.stride(-1) == 1 && x.dim() >= 2 && x.numel() > 0;
  if (is_view) {
    bool merges = true;
    for (int64_t d = 0; d + 2 < x.dim(); ++d)
      merges = merges && x.stride(d) == x.stride(d + 1) * x.size(d + 1);
    if (merges) return x.as_strided({x.numel() / columns, columns}, {x.stride(-2), 1});
  }
  return x.contiguous().view({columns ? x.numel() / columns : 0, columns});
}

Tiles tiles_of(const Tensor& x, std::initializer_list<const Tensor*> matrices) {
  Tiles tiles{.rows = x.size(0), .columns = x.size(1), .tiles_per_row = 0, .is_aligned = true};
  for (const Tensor* matrix : matrices)
    tiles.is_aligned = tiles.is_aligned && has_aligned_rows(*matrix, matrix->stride(0));
  tiles.is_aligned = tiles.is_aligned && has_aligned_rows(x, x.size(1));  // results are contiguous
  const int64_t width = int64_t{256} * grid::kAccess / x.element_size();
  tiles.tiles_per_row = blocks_for(tiles.columns, width);
  return tiles;
}

/// Writes the rotated x to `out`, whose heads are contiguous.
void rotate_into(const Tensor& x_in, const Tensor& cos, const Tensor& sin, const Tensor& positions,
                 bool inverse, const Tensor& out) {
  const Tensor x = x_in.stride(3) == 1 ? x_in : x_in.contiguous();
  const int64_t half = x.size(3) / 2;
  const auto has_aligned_tokens = [](const Tensor& t) {
    return has_aligned_rows(t, t.stride(0)) && has_aligned_rows(t, t.stride(1)) &&
           has_aligned_rows(t, t.stride(2));
  };
  const bool is_aligned = has_aligned_rows(x, half) && has_aligned_tokens(x) &&
                          has_aligned_tokens(out) && has_aligned_rows(cos, half) &&
                          has_aligned_rows(sin, half);
  with_type(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const int64_t pieces = x.numel() / 2 / (is_aligned ? kPerAccess<T> : 1);
    TITAN_ASSERT(pieces <= std::numeric_limits<uint32_t>::max(), x.sizes());
    launch(RopeRotate<T>{.x = span_of<const T>(x),
                         .batch_stride = x.stride(0),
                         .token_stride = x.stride(1),
                         .head_stride = x.stride(2),
                         .out = span_of<T>(out),
                         .out_batch_stride = out.stride(0),
                         .out_token_stride = out.stride(1),
                         .cosine = span_of<const float>(cos),
                         .sine = span_of<const float>(sin),
                         .positions = span_of<const int64_t>(positions),
                         .num_positions = cos.size(0),
                         .num_pieces = static_cast<uint32_t>(pieces),
                         .heads = static_cast<uint32_t>(x.size(2)),
                         .tokens = static_cast<uint32_t>(x.size(1)),
                         .half = static_cast<uint32_t>(half),
                         .sign = inverse ? -1.0f : 1.0f,
                         .is_aligned = is_aligned},
           blocks_for(pieces, RopeRotate<T>::kThreads));
  });
}

/// `product` undefined: not computed.
void swiglu_backward_into(const Tensor& dout, const Tensor& gate, const Tensor& up,
                          const Tensor& dgate, const Tensor& dup, const Tensor& product) {
  const Tiles tiles = tiles_of(gate, {&dout, &gate, &up});
  with_type(gate.scalar_type(), [&](auto type) {
    using T = decltype(type);
    launch(SwigluBackward<T>{.dout = span_of<const T>(dout),
                             .gate = span_of<const T>(gate),
                             .up = span_of<const T>(up),
                             .dgate = span_of<T>(dgate),
                             .dup = span_of<T>(dup),
                             .product = span_of<T>(product),
                             .dout_stride = dout.stride(0),
                             .gate_stride = gate.stride(0),
                             .up_stride = up.stride(0),
                             .tiles = tiles},
           tiles.rows * tiles.tiles_per_row);
  });
}

}  // namespace

bool has_kernels(const Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double eps) {
  SumAndNorm out = norm(x, Tensor(), weight, eps);
  return {out.y, out.rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd) {
  return norm_backward(dy, Tensor(), x, weight, rstd);
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& residual,
                                                        const Tensor& weight, double eps) {
  const SumAndNorm out = norm(x, residual, weight, eps);
  return {out.sum, out.y, out.rstd};
}

std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd) {
  return norm_backward(dy, dsum, sum, weight, rstd);
}

Tensor swiglu_forward(const Tensor& gate_in, const Tensor& up_in) {
  const Tensor gate = as_rows(gate_in), up = as_rows(up_in);
  const Tensor out = at::empty(gate_in.sizes(), gate_in.options());
  const Tiles tiles = tiles_of(gate, {&gate, &up});
  with_type(gate.scalar_type(), [&](auto type) {
    using T = decltype(type);
    launch(SwigluForward<T>{.gate = span_of<const T>(gate),
                            .up = span_of<const T>(up),
                            .out = span_of<T>(out),
                            .gate_stride = gate.stride(0),
                            .up_stride = up.stride(0),
                            .tiles = tiles},
           tiles.rows * tiles.tiles_per_row);
  });
  return out;
}

std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up) {
  const Tensor dgate = at::empty(gate.sizes(), gate.options());
  const Tensor dup = at::empty(gate.sizes(), gate.options());
  swiglu_backward_into(as_rows(dout), as_rows(gate), as_rows(up), dgate, dup, Tensor());
  return {dgate, dup};
}

void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  swiglu_backward_into(as_rows(dout), as_rows(gate), as_rows(up), gate, up, dout);
}

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse) {
  const Tensor q_out = at::empty(q.sizes(), q.options());
  const Tensor k_out = at::empty(k.sizes(), k.options());
  rope_into(q, k, cos, sin, positions, inverse, q_out, k_out);
  return {q_out, k_out};
}

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos_in, const Tensor& sin_in,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out) {
  const Tensor cos = cos_in.contiguous(), sin = sin_in.contiguous();
  const Tensor places = positions ? positions->contiguous() : Tensor();
  rotate_into(q, cos, sin, places, inverse, q_out);
  rotate_into(k, cos, sin, places, inverse, k_out);
}

}  // namespace titan::cuda::fused
