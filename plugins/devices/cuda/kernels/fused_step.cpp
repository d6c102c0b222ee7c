// The fused operations around a step: float8 of a matrix, and the update of a weight.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "adamw.h"
#include "float8.h"
#include "fused_ops.h"
#include "launch.h"
#include "spans.h"

namespace titan::cuda::fused {
namespace {

/// Blocks that a tensor is cut into where one maximum is made of all: few enough to be read by
/// every block after. Numbers of the element alone, so that they fit every type.
constexpr int64_t kMostBlocks = 1024;
constexpr int64_t kMultiple = 2048;
/// Elements of a block that updates weights.
constexpr int64_t kUpdated = 8192;

template <class Use>
void with_float_or_bfloat16(at::ScalarType type, const Use& use) {
  TITAN_ASSERT(type == at::kFloat || type == at::kBFloat16, "no kernel for ", type);
  if (type == at::kFloat)
    use(float{});
  else
    use(BFloat16{});
}

/// use(W{}, G{}, S{}) for tensors that `takes_adamw` holds of.
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

}  // namespace

std::tuple<Tensor, Tensor> quantize_tensor(const Tensor& x_in, at::ScalarType format,
                                           bool to_power_of_two) {
  TITAN_ASSERT(format == at::kFloat8_e4m3fn || format == at::kFloat8_e5m2, "format ", format);
  // pieces of 16 bytes are counted from the first element
  const Tensor dense = x_in.contiguous();
  const Tensor x = has_aligned_rows(dense, 0) ? dense : dense.clone();
  const Tensor values = at::empty(x.sizes(), x.options().dtype(format));
  const Tensor scale = at::empty({}, x.options().dtype(at::kFloat));
  const int64_t per_block =
      std::max<int64_t>(1, blocks_for(blocks_for(x.numel(), kMostBlocks), kMultiple)) * kMultiple;
  const int64_t blocks = std::max<int64_t>(1, blocks_for(x.numel(), per_block));
  const Tensor largest = at::empty({blocks}, scale.options());
  with_float_or_bfloat16(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const auto in = span_of<const T>(x);
    launch(LargestOfBlocks<T>{.x = in, .largest = span_of<float>(largest), .per_block = per_block},
           blocks);
    const auto quantize = [&](auto to) {
      using Format = decltype(to);
      launch(QuantizeTensor<T, Format>{.x = in,
                                       .largest = span_of<const float>(largest),
                                       .values = span_of<Format>(values),
                                       .scale = span_of<float>(scale),
                                       .per_block = per_block,
                                       .to_power_of_two = to_power_of_two},
             blocks);
    };
    if (format == at::kFloat8_e4m3fn)
      quantize(Float8E4m3{});
    else
      quantize(Float8E5m2{});
  });
  return {values, scale};
}

std::tuple<Tensor, Tensor> quantize_rows(const Tensor& x_in, bool to_power_of_two) {
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

bool adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                const Tensor& exp_avg_sq, const Tensor& step, double lr, double beta1, double beta2,
                double eps, double weight_decay, std::optional<int64_t> rounding_key, int64_t first,
                int64_t columns, int64_t whole_columns) {
  if (!takes_adamw(weight, gradient, exp_avg, exp_avg_sq, step)) return false;
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

}  // namespace titan::cuda::fused
