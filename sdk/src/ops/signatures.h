// The operations' signatures in the dispatcher: one schema each (schemas.cpp), one implementation
// per device (cpu/, meta.cpp, device plugins). Used by everything in this folder.
#pragma once

#include <cstdint>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace titan::ops {

using at::Tensor;

// y, rstd (rows) in the type of the computation
using RmsNormForward = std::tuple<Tensor, Tensor>(const Tensor& x, const Tensor& weight,
                                                  double eps);
using RmsNormBackward = std::tuple<Tensor, Tensor>(const Tensor& dy, const Tensor& x,
                                                   const Tensor& weight, const Tensor& rstd);
using SwigluForward = Tensor(const Tensor& gate, const Tensor& up);
using SwigluBackward = std::tuple<Tensor, Tensor>(const Tensor& dout, const Tensor& gate,
                                                  const Tensor& up);
// positions (B, S) or undefined; inverse: by the negative angles
using RopeRotate = std::tuple<Tensor, Tensor>(const Tensor& q, const Tensor& k, const Tensor& cos,
                                              const Tensor& sin,
                                              const std::optional<Tensor>& positions, bool inverse);
// out, logsumexp
using AttentionForward = std::tuple<Tensor, Tensor>(const Tensor& q, const Tensor& k,
                                                    const Tensor& v, bool causal, double scale);
using AttentionBackward = std::tuple<Tensor, Tensor, Tensor>(const Tensor& dout, const Tensor& q,
                                                             const Tensor& k, const Tensor& v,
                                                             const Tensor& out,
                                                             const Tensor& logsumexp, bool causal,
                                                             double scale);
// of documents stored one after the other; see titan/ops/document_attention.h
using PackedAttentionForward = std::tuple<Tensor, Tensor>(const Tensor& q, const Tensor& k,
                                                          const Tensor& v, at::IntArrayRef lengths,
                                                          bool causal, double scale);
using PackedAttentionBackward = std::tuple<Tensor, Tensor, Tensor>(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, at::IntArrayRef lengths, bool causal, double scale);
// loss, dx and dweight for a loss gradient of 1; those not needed are undefined
using LinearCrossEntropy = std::tuple<Tensor, Tensor, Tensor>(const Tensor& x, const Tensor& weight,
                                                              const Tensor& labels, bool needs_dx,
                                                              bool needs_dweight);
using EmbeddingForward = Tensor(const Tensor& weight, const Tensor& tokens);
using EmbeddingBackward = Tensor(const Tensor& dout, const Tensor& tokens, int64_t num_rows);
// x (N, k), weight (G, k, n), which may be a transposed view; see titan/ops/grouped_linear.h
using GroupedMm = Tensor(const Tensor& x, const Tensor& weight, at::IntArrayRef rows);
// (G, out, in) of grad (N, out) and x (N, in); zero for groups without rows
using GroupedMmWeightGrad = Tensor(const Tensor& grad, const Tensor& x, at::IntArrayRef rows);
// false if the device has no kernel for these dtypes. rounding_key: unset rounds to nearest. The
// last three arguments locate the slice in the whole. No implementation on the CPU
using AdamWStep = bool(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                       const Tensor& exp_avg_sq, const Tensor& step, double lr, double beta1,
                       double beta2, double eps, double weight_decay,
                       std::optional<int64_t> rounding_key, int64_t first, int64_t columns,
                       int64_t whole_columns);
using ScaledAdamWStep = bool(const Tensor& weight, const Tensor& gradient,
                             const Tensor& gradient_scale, const Tensor& exp_avg,
                             const Tensor& exp_avg_sq, const Tensor& step, double lr, double beta1,
                             double beta2, double eps, double weight_decay,
                             std::optional<int64_t> rounding_key, int64_t first, int64_t columns,
                             int64_t whole_columns);

// values, scale. No implementation on the CPU
using Float8OfTensor = std::tuple<Tensor, Tensor>(const Tensor& x, at::ScalarType format,
                                                  bool to_power_of_two);
using Float8OfRows = std::tuple<Tensor, Tensor>(const Tensor& x, bool to_power_of_two);
// values. No implementation on the CPU
using Float8ByScale = Tensor(const Tensor& x, const Tensor& scale, at::ScalarType format);

// sum, y, rstd
using AddRmsNormForward = std::tuple<Tensor, Tensor, Tensor>(const Tensor& x, const Tensor& delta,
                                                             const Tensor& weight, double eps);
// the gradient of x and of delta, and dweight
using AddRmsNormBackward = std::tuple<Tensor, Tensor>(const Tensor& dy, const Tensor& dsum,
                                                      const Tensor& sum, const Tensor& weight,
                                                      const Tensor& rstd);
using SwigluBackwardInPlace = void(const Tensor& dout, const Tensor& gate, const Tensor& up);
using RopeInto = void(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
                      const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
                      const Tensor& k_out);

/// Implementations for the CPU, registered by cpu/register.cpp.
namespace cpu {
RmsNormForward rms_norm_forward;
RmsNormBackward rms_norm_backward;
SwigluForward swiglu_forward;
SwigluBackward swiglu_backward;
RopeRotate rope_rotate;
AttentionForward attention_forward;
AttentionBackward attention_backward;
LinearCrossEntropy linear_cross_entropy;
EmbeddingForward embedding_forward;
EmbeddingBackward embedding_backward;
GroupedMm grouped_mm;
GroupedMmWeightGrad grouped_mm_weight_grad;
AddRmsNormForward add_rms_norm_forward;
AddRmsNormBackward add_rms_norm_backward;
SwigluBackwardInPlace swiglu_backward_in_place;
RopeInto rope_into;
}  // namespace cpu

/// Composed of the operations above, for devices and dtypes without a fused kernel.
namespace composed {
AddRmsNormForward add_rms_norm_forward;
AddRmsNormBackward add_rms_norm_backward;
SwigluBackwardInPlace swiglu_backward_in_place;
RopeInto rope_into;
}  // namespace composed

}  // namespace titan::ops
