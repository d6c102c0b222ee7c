// The operations of titan/ops composed from ATen operations, for devices and dtypes without kernels
// of their own. register_ops.cpp registers them for CUDA; tests run them on the CPU too.
//
// Results, dtypes and layouts are as titan/ops documents them, with one difference: ATen detects
// tokens, labels and positions out of range. On a GPU that is an assertion on the device, which
// ends the run at the next synchronisation. Checking them first would make the host wait for the
// GPU in every layer.
// wait for the GPU in every layer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace titan::composite {

using at::Tensor;

/// y in x's dtype; rstd (rows), fp32 or double.
std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double eps);
/// dx, dweight.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd);

/// x + residual in their dtype; the norm of the sum; rstd.
std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& residual,
                                                        const Tensor& weight, double eps);
/// The gradient of the sum, including `dsum`, the gradient that bypasses the norm; dweight.
std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd);

Tensor swiglu_forward(const Tensor& gate, const Tensor& up);
/// dgate, dup.
std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up);
/// dout, gate and up become silu(gate) · up and the gradients of gate and up.
void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up);

/// q and k rotated by the angles of `positions` (B, S), default 0 ... S-1; `inverse`: rotated back.
std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse);
/// As rope_rotate, written to q_out and k_out, which may be q and k themselves.
void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out);

Tensor embedding_forward(const Tensor& weight, const Tensor& tokens);
Tensor embedding_backward(const Tensor& dout, const Tensor& tokens, int64_t num_rows);

/// titan::grouped_mm by at::_grouped_mm, if that supports the operands: fp32, fp16 and bf16, rows
/// and addresses at multiples of 16 bytes, fewer than 1024 groups. Otherwise one product per group.
Tensor grouped_mm(const Tensor& x, const Tensor& weight, at::IntArrayRef rows);
/// titan::grouped_mm_weight_grad in the same way.
Tensor grouped_mm_weight_grad(const Tensor& grad, const Tensor& x, at::IntArrayRef rows);

/// The sum of the losses, dx, dweight; gradients that are not needed are undefined.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight);

/// The implementation that computes attention. All return the same logsumexp, so forward and
/// backward may use different ones.
enum class AttentionPath {
  cudnn,             ///< fp16 and bf16, where `suits_cudnn`; flash if cuDNN refuses
  flash,             ///< fp16 and bf16, head_dim 8, 16 ... 256; supports grouped queries
  memory_efficient,  ///< fp32, fp16, bf16; rows of heads must be multiples of 16 bytes
  math               ///< everything else: matrix products over blocks of queries
};

/// Whether cuDNN may compute this attention: fp16 or bf16, head_dim 64, 72 ... 128, lengths of at
/// least 512 that are multiples of 128. Not with deterministic algorithms, which LibTorch does not
/// request from cuDNN's backward, and not after cuDNN has refused. See Note [Attention by cuDNN].
bool suits_cudnn(const Tensor& q, const Tensor& k);
/// True once cuDNN has refused an attention; from then on flash computes in its place until the
/// process ends. Set by the path `cudnn`; tests reset it. Any thread.
std::atomic<bool>& cudnn_has_refused();

/// out, logsumexp.
std::tuple<Tensor, Tensor> attention_forward(AttentionPath path, const Tensor& q, const Tensor& k,
                                             const Tensor& v, bool causal, double scale);
/// dq, dk, dv.
std::tuple<Tensor, Tensor, Tensor> attention_backward(AttentionPath path, const Tensor& dout,
                                                      const Tensor& q, const Tensor& k,
                                                      const Tensor& v, const Tensor& out,
                                                      const Tensor& logsumexp, bool causal,
                                                      double scale);

/// titan::packed_attention_forward and _backward (titan/ops/document_attention.h). The flash kernel
/// computes all documents at once from their offsets; other paths compute one after the other. Out
/// and gradients are contiguous; logsumexp has the layout of its path.
std::tuple<Tensor, Tensor> packed_attention_forward(AttentionPath path, const Tensor& q,
                                                    const Tensor& k, const Tensor& v,
                                                    at::IntArrayRef lengths, bool causal,
                                                    double scale);
std::tuple<Tensor, Tensor, Tensor> packed_attention_backward(
    AttentionPath path, const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
    const Tensor& out, const Tensor& logsumexp, at::IntArrayRef lengths, bool causal, double scale);

/// The dtype in which results of `x` are computed: double for double, else fp32.
inline at::ScalarType wide_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace titan::composite
