// The operations of titan/ops by the kernels of this folder, each in one or two launches and
// without waiting for the GPU. register_ops.cpp registers them; the tests run the same code on the
// host, where launches go to the emulator.
//
// fp32, bf16 and fp16; arithmetic in fp32, each result rounded once. Other types are
// composite_ops'. Results are the same bits in every run. Shapes and layouts are as titan/ops
// documents them.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::cuda::fused {

using at::Tensor;

/// Whether there are kernels for tensors like x.
bool has_kernels(const Tensor& x);

/// y, rstd.
std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double eps);
/// dx, dweight.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd);

/// x + residual, rounded to their type; its norm; rstd. In one pass over memory less than one after
/// the other, to the same bits.
std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& residual,
                                                        const Tensor& weight, double eps);
/// The gradient of `sum`, which is that of x and of residual, and dweight. `dsum`: what comes to
/// the sum past the norm; rounded once with the norm's share.
std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd);

Tensor swiglu_forward(const Tensor& gate, const Tensor& up);
std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up);
/// dout, gate and up, which are contiguous, become silu(gate) · up and the gradients of gate and
/// up: the bits of the two operations above, in one launch.
void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up);

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse);
/// The same bits in q_out and k_out, whose heads are contiguous; they may be q and k themselves.
void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out);

/// In the order of the tokens, as the CPU adds: the same bits.
Tensor embedding_backward(const Tensor& dout, const Tensor& tokens, int64_t num_rows);

/// Logits (rows, words), contiguous. Losses (rows) in fp32; with `gradient` the logits become
/// theirs.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, bool gradient);
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight);
/// The same with the logits of `rows_per_chunk` rows in memory at a time; above they are those of
/// titan::ops::fused_head_rows.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_by_rows(int64_t rows_per_chunk,
                                                                const Tensor& x,
                                                                const Tensor& weight,
                                                                const Tensor& labels, bool needs_dx,
                                                                bool needs_dweight);

/// Values in `format` (kFloat8_e4m3fn, kFloat8_e5m2) and the fp32 scale: a scalar, or (rows, 1). As
/// titan::float8 scales and casts, to the bit. x (rows, columns), fp32 or bf16; of a transposed
/// view the values are made in one pass, too. They are contiguous.
std::tuple<Tensor, Tensor> quantize_tensor(const Tensor& x, at::ScalarType format,
                                           bool to_power_of_two);
/// With a scale that is known, an fp32 scalar on x's device.
Tensor quantize_by_scale(const Tensor& x, const Tensor& scale, at::ScalarType format);
/// kFloat8_e4m3fn alone.
std::tuple<Tensor, Tensor> quantize_rows(const Tensor& x, bool to_power_of_two);

/// As the operation titan::adamw_step_ (titan/ops/adamw_step.h): false where there is no kernel for
/// these types, or a tensor is not contiguous.
bool adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                const Tensor& exp_avg_sq, const Tensor& step, double lr, double beta1, double beta2,
                double eps, double weight_decay, std::optional<int64_t> rounding_key, int64_t first,
                int64_t columns, int64_t whole_columns);
/// As titan::scaled_adamw_step_ (titan/ops/scaled_adamw_step.h). An undefined scale is 1.
bool scaled_adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& gradient_scale,
                       const Tensor& exp_avg, const Tensor& exp_avg_sq, const Tensor& step,
                       double lr, double beta1, double beta2, double eps, double weight_decay,
                       std::optional<int64_t> rounding_key, int64_t first, int64_t columns,
                       int64_t whole_columns);

}  // namespace titan::cuda::fused
