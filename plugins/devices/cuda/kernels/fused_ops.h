// The operations of titan/ops by the kernels of this folder, each in one or two launches and
// without waiting for the GPU. register_ops.cpp registers them. Tests run the same code on the
// host, where the emulator runs the launches.
//
// Dtypes fp32, bf16 and fp16; arithmetic in fp32, each result rounded once. composite_ops handles
// other dtypes. Results are bitwise reproducible. Shapes and layouts are as titan/ops documents
// them.
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

/// x + residual, rounded to their dtype; the norm of the sum; rstd. Saves one pass over memory
/// compared with the two operations in sequence, with the same bits.
std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& residual,
                                                        const Tensor& weight, double eps);
/// The gradient of `sum`, which is that of x and of residual, and dweight. `dsum`: the gradient of
/// the sum that bypasses the norm; it is added before rounding.
std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd);

Tensor swiglu_forward(const Tensor& gate, const Tensor& up);
std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up);
/// The contiguous tensors dout, gate and up become silu(gate) · up and the gradients of gate and
/// up. Same bits as the two operations above, in one launch.
void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up);

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse);
/// Same bits, written to q_out and k_out, whose heads are contiguous; they may be q and k.
void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out);

/// Adds in the order of the tokens, as on the CPU, with the same bits.
Tensor embedding_backward(const Tensor& dout, const Tensor& tokens, int64_t num_rows);

/// Contiguous logits (rows, words). Returns the losses (rows) in fp32; with `gradient` the gradient
/// replaces the logits.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, bool gradient);
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight);
/// As linear_cross_entropy with the logits of `rows_per_chunk` rows in memory at a time; that uses
/// titan::ops::fused_head_rows.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_by_rows(int64_t rows_per_chunk,
                                                                const Tensor& x,
                                                                const Tensor& weight,
                                                                const Tensor& labels, bool needs_dx,
                                                                bool needs_dweight);

/// Values in `format` (kFloat8_e4m3fn, kFloat8_e5m2) and the fp32 scale: a scalar, or (rows, 1).
/// Bitwise equal to titan::float8. x (rows, columns) is fp32 or bf16, and may be a transposed view,
/// which also takes one pass. The values are contiguous.
std::tuple<Tensor, Tensor> quantize_tensor(const Tensor& x, at::ScalarType format,
                                           bool to_power_of_two);
/// With a given scale, an fp32 scalar on x's device.
Tensor quantize_by_scale(const Tensor& x, const Tensor& scale, at::ScalarType format);
/// Only for kFloat8_e4m3fn.
std::tuple<Tensor, Tensor> quantize_rows(const Tensor& x, bool to_power_of_two);

/// As the operation titan::adamw_step_ (titan/ops/adamw_step.h). False if there is no kernel for
/// these dtypes, or a tensor is not contiguous.
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
