// The fused operations around a step: quantization of a matrix to float8, and AdamW.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "adamw.h"
#include "float8.h"
#include "fused_ops.h"
#include "launch.h"
#include "spans.h"

namespace titan::cuda::fused {
namespace {

/// Most blocks for a maximum of all elements: few enough that every block can read all partial
/// maxima. Both constants are counts of elements that fit every dtype.
constexpr int64_t kMostBlocks = 1024;
constexpr int64_t kMultiple = 2048;
/// Elements per block of the AdamW kernel.
constexpr int64_t kUpdated = 8192;

template <class Use>
void with_float_or_bfloat16(at::ScalarType type, const Use& use) {
  TITAN_ASSERT(type == at::kFloat || type == at::kBFloat16, "no kernel for ", type);
  if (type == at::kFloat)
    use(float{});
  else
    use(BFloat16{});
}

/// Calls use(W{}, G{}, S{}) for tensors that `takes_adamw` accepts.
template <class Use>
void with_adamw_types(const Tensor& weight, const Tensor& gradient, const Tensor& state,
                      const Use& use) {
  with_float_or_bfloat16(state.scalar_type(), [&](auto s) {
    using S = decltype(s);
    if (weight.scalar_type() == at::kFloat)
      use(float{}, float{}, S{});
    else
      with_float_or_bfloat16(gradient.scalar_type(),
                             [&](auto g) { use(BFloat16{}, decltype(g){}, S{}); });
  });
}

bool takes_adamw(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                 const Tensor& exp_avg_sq, const Tensor& step) {
  for (const Tensor* x : {&weight, &gradient, &exp_avg, &exp_avg_sq}) {
    const bool has_type = x->scalar_type() == at::kFloat || x->scalar_type() == at::kBFloat16;
    if (!has_type || !x->is_contiguous() || x->numel() != weight.numel()) return false;
  }
  if (exp_avg.scalar_type() != exp_avg_sq.scalar_type()) return false;
  if (step.scalar_type() != at::kFloat || step.device() != weight.device()) return false;
  return weight.scalar_type() == at::kBFloat16 || gradient.scalar_type() == at::kFloat;
}

/// x, or a copy of it whose pieces of 16 bytes, counted from the first element, are aligned.
Tensor aligned(const Tensor& x) {
  const Tensor dense = x.contiguous();
  return has_aligned_rows(dense, 0) ? dense : dense.clone();
}

/// Whether x is the transpose of a contiguous matrix. The kernels transpose it in shared memory.
bool is_turned(const Tensor& x) {
  return x.dim() == 2 && x.numel() > 0 && !x.is_contiguous() && x.t().is_contiguous();
}

template <class Use>
void with_format(at::ScalarType format, const Use& use) {
  TITAN_ASSERT(format == at::kFloat8_e4m3fn || format == at::kFloat8_e5m2, "format ", format);
  if (format == at::kFloat8_e4m3fn)
    use(Float8E4m3{});
  else
    use(Float8E5m2{});
}

/// Elements of each block when the blocks share all of x.
int64_t share_of_block(const Tensor& x) {
  return std::max<int64_t>(1, blocks_for(blocks_for(x.numel(), kMostBlocks), kMultiple)) *
         kMultiple;
}

/// x is aligned.
Tensor largest_of_blocks(const Tensor& x) {
  const int64_t per_block = share_of_block(x);
  const int64_t blocks = std::max<int64_t>(1, blocks_for(x.numel(), per_block));
  const Tensor largest = at::empty({blocks}, x.options().dtype(at::kFloat));
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    launch(
        LargestOfBlocks<T>{
            .x = span_of<const T>(x), .largest = span_of<float>(largest), .per_block = per_block},
        blocks);
  });
  return largest;
}

/// The scales of the columns of x (rows, columns): (columns).
Tensor scale_of_columns(const Tensor& x, bool to_power_of_two) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const Tensor scale = at::empty({columns}, x.options().dtype(at::kFloat));
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    using Kernel = LargestOfColumns<decltype(type)>;
    const int64_t strips = blocks_for(rows, Kernel::kTall);
    const int64_t column_blocks = blocks_for(columns, Kernel::kWide);
    const Tensor largest = at::empty({strips, columns}, scale.options());
    launch(Kernel{.x = span_of<const decltype(type)>(x),
                  .largest = span_of<float>(largest),
                  .rows = rows,
                  .columns = columns,
                  .column_blocks = column_blocks,
                  .is_aligned = has_aligned_rows(x, columns)},
           strips * column_blocks);
    launch(ScaleOfColumns<Float8E4m3>{.largest = span_of<const float>(largest),
                                      .scale = span_of<float>(scale),
                                      .strips = strips,
                                      .columns = columns,
                                      .to_power_of_two = to_power_of_two},
           blocks_for(columns, grid::kWarp));
  });
  return scale;
}

/// Quantizes the transpose of the contiguous x (rows, columns). `largest`: of largest_of_blocks, or
/// undefined if `scale` is known: a scalar, or one per column.
Tensor quantize_turned(const Tensor& x, const Tensor& largest, const Tensor& scale,
                       at::ScalarType format, bool to_power_of_two) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const Tensor values = at::empty({columns, rows}, x.options().dtype(format));
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    with_format(format, [&](auto to) {
      using T = decltype(type);
      using Format = decltype(to);
      using Kernel = QuantizeTurned<T, Format>;
      const int64_t column_blocks = blocks_for(columns, Kernel::kSide);
      launch(Kernel{.x = span_of<const T>(x),
                    .largest = span_of<const float>(largest),
                    .values = span_of<Format>(values),
                    .scale = span_of<float>(scale),
                    .rows = rows,
                    .columns = columns,
                    .column_blocks = column_blocks,
                    .is_aligned = has_aligned_rows(x, columns),
                    .has_scale_of_columns = scale.dim() > 0,
                    .to_power_of_two = to_power_of_two},
             column_blocks * blocks_for(rows, Kernel::kSide));
    });
  });
  return values;
}

/// x is aligned; `largest` and `scale` as above.
Tensor quantize_whole(const Tensor& x, const Tensor& largest, const Tensor& scale,
                      at::ScalarType format, bool to_power_of_two) {
  const Tensor values = at::empty(x.sizes(), x.options().dtype(format));
  const int64_t per_block = share_of_block(x);
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    with_format(format, [&](auto to) {
      using T = decltype(type);
      using Format = decltype(to);
      launch(QuantizeTensor<T, Format>{.x = span_of<const T>(x),
                                       .largest = span_of<const float>(largest),
                                       .values = span_of<Format>(values),
                                       .scale = span_of<float>(scale),
                                       .per_block = per_block,
                                       .to_power_of_two = to_power_of_two},
             std::max<int64_t>(1, blocks_for(x.numel(), per_block)));
    });
  });
  return values;
}

}  // namespace

std::tuple<Tensor, Tensor> quantize_tensor(const Tensor& x_in, at::ScalarType format,
                                           bool to_power_of_two) {
  const bool turned = is_turned(x_in);
  const Tensor x = aligned(turned ? x_in.t() : x_in);
  const Tensor scale = at::empty({}, x.options().dtype(at::kFloat));
  const Tensor largest = largest_of_blocks(x);
  const Tensor values = turned ? quantize_turned(x, largest, scale, format, to_power_of_two)
                               : quantize_whole(x, largest, scale, format, to_power_of_two);
  return {values, scale};
}

Tensor quantize_by_scale(const Tensor& x_in, const Tensor& scale, at::ScalarType format) {
  TITAN_ASSERT(scale.dim() == 0 && scale.scalar_type() == at::kFloat, scale.sizes());
  return is_turned(x_in) ? quantize_turned(x_in.t(), {}, scale, format, false)
                         : quantize_whole(aligned(x_in), {}, scale, format, false);
}

std::tuple<Tensor, Tensor> quantize_rows(const Tensor& x_in, bool to_power_of_two) {
  if (is_turned(x_in)) {
    const Tensor scale = scale_of_columns(x_in.t(), to_power_of_two);
    return {quantize_turned(x_in.t(), {}, scale, at::kFloat8_e4m3fn, to_power_of_two),
            scale.view({-1, 1})};
  }
  const Tensor x = x_in.contiguous();
  const Tensor values = at::empty(x.sizes(), x.options().dtype(at::kFloat8_e4m3fn));
  const Tensor scale = at::empty({x.size(0), 1}, x.options().dtype(at::kFloat));
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    launch(QuantizeRows<T, Float8E4m3>{.x = span_of<const T>(x),
                                       .values = span_of<Float8E4m3>(values),
                                       .scale = span_of<float>(scale),
                                       .columns = x.size(1),
                                       .is_aligned = has_aligned_rows(x, x.size(1)),
                                       .to_power_of_two = to_power_of_two},
           x.size(0));
  });
  return {values, scale};
}

bool scaled_adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& gradient_scale,
                       const Tensor& exp_avg, const Tensor& exp_avg_sq, const Tensor& step,
                       double lr, double beta1, double beta2, double eps, double weight_decay,
                       std::optional<int64_t> rounding_key, int64_t first, int64_t columns,
                       int64_t whole_columns) {
  if (!takes_adamw(weight, gradient, exp_avg, exp_avg_sq, step)) return false;
  if (gradient_scale.defined() &&
      (gradient_scale.scalar_type() != at::kFloat || gradient_scale.device() != weight.device()))
    return false;
  const bool is_aligned = has_aligned_rows(weight, 0) && has_aligned_rows(gradient, 0) &&
                          has_aligned_rows(exp_avg, 0) && has_aligned_rows(exp_avg_sq, 0);
  with_adamw_types(weight, gradient, exp_avg, [&](auto w, auto g, auto s) {
    using W = decltype(w);
    using G = decltype(g);
    using S = decltype(s);
    launch(AdamW<W, G, S>{.weight = span_of<W>(weight),
                          .gradient = span_of<const G>(gradient),
                          .exp_avg = span_of<S>(exp_avg),
                          .exp_avg_sq = span_of<S>(exp_avg_sq),
                          .step = span_of<const float>(step),
                          .scale = span_of<const float>(gradient_scale),
                          .numbers = {lr, beta1, beta2, eps, weight_decay},
                          .per_block = kUpdated,
                          .is_aligned = is_aligned,
                          .rounds_at_random = rounding_key.has_value(),
                          .key = static_cast<uint64_t>(rounding_key.value_or(0)),
                          .place = {columns, first, whole_columns}},
           blocks_for(weight.numel(), kUpdated));
  });
  return true;
}

bool adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                const Tensor& exp_avg_sq, const Tensor& step, double lr, double beta1, double beta2,
                double eps, double weight_decay, std::optional<int64_t> rounding_key, int64_t first,
                int64_t columns, int64_t whole_columns) {
  return scaled_adamw_step(weight, gradient, /*gradient_scale=*/{}, exp_avg, exp_avg_sq, step, lr,
                           beta1, beta2, eps, weight_decay, rounding_key, first, columns,
                           whole_columns);
}

}  // namespace titan::cuda::fused
