// Registers the operations of titan/ops for CUDA: the plugin's own kernels if it was built with
// them and they support the dtype, otherwise compositions of ATen operations.
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAStream.h>
#include <titan/error.h>
#include <titan/ops/grouped_linear.h>
#include <torch/library.h>

#include "composite_ops.h"
#include "kernels/fused_ops.h"
#include "kernels/launch.h"

namespace titan::cuda {
namespace {

using at::Tensor;
using composite::AttentionPath;

/// The fused attention kernels require the bytes of a head to be a multiple of this.
constexpr int64_t kAlignment = 16;
constexpr int64_t kWidestFlashHead = 256;
constexpr int kFirstWithFlash = 8;  // Ampere; bfloat16 in hardware starts there too
/// Hopper. On data-center Blackwell, PyTorch users report wrong results of cuDNN 9.19 and 9.20 for
/// fewer than 8 key heads.
constexpr int kWithCudnnAttention = 9;

/// q (..., hd).
AttentionPath path_for(const Tensor& q) {
  const int major = at::cuda::getDeviceProperties(q.device().index())->major;
  const at::ScalarType type = q.scalar_type();
  const bool is_narrow = type == at::kHalf || type == at::kBFloat16;
  const int64_t head_dim = q.size(-1);
  const bool is_aligned = head_dim * static_cast<int64_t>(q.element_size()) % kAlignment == 0;
  if (!is_aligned) return AttentionPath::math;
  if (is_narrow && major >= kFirstWithFlash && head_dim <= kWidestFlashHead)
    return AttentionPath::flash;
  if (type == at::kFloat || type == at::kHalf || (is_narrow && major >= kFirstWithFlash))
    return AttentionPath::memory_efficient;
  return AttentionPath::math;
}

/// The path for sequences that are not packed. q (B, H, S, hd), k (B, KV, Skv, hd).
AttentionPath path_for(const Tensor& q, const Tensor& k) {
  const int major = at::cuda::getDeviceProperties(q.device().index())->major;
  return major == kWithCudnnAttention && composite::suits_cudnn(q, k) ? AttentionPath::cudnn
                                                                      : path_for(q);
}

std::tuple<Tensor, Tensor> attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                             bool causal, double scale) {
  return composite::attention_forward(path_for(q, k), q, k, v, causal, scale);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout, const Tensor& q,
                                                      const Tensor& k, const Tensor& v,
                                                      const Tensor& out, const Tensor& logsumexp,
                                                      bool causal, double scale) {
  return composite::attention_backward(path_for(q, k), dout, q, k, v, out, logsumexp, causal,
                                       scale);
}

std::tuple<Tensor, Tensor> packed_attention_forward(const Tensor& q, const Tensor& k,
                                                    const Tensor& v, at::IntArrayRef lengths,
                                                    bool causal, double scale) {
  return composite::packed_attention_forward(path_for(q), q, k, v, lengths, causal, scale);
}

std::tuple<Tensor, Tensor, Tensor> packed_attention_backward(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, at::IntArrayRef lengths, bool causal, double scale) {
  return composite::packed_attention_backward(path_for(q), dout, q, k, v, out, logsumexp, lengths,
                                              causal, scale);
}

/// at::_grouped_mm has a kernel for bf16 on Hopper and data-center Blackwell. Elsewhere it is a
/// loop that waits for the GPU to learn the ends of the groups, which the host knows.
bool has_grouped_kernel(const Tensor& x) {
  const int major = at::cuda::getDeviceProperties(x.device().index())->major;
  return x.scalar_type() == at::kBFloat16 && (major == 9 || major == 10);
}

Tensor grouped_mm(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  return has_grouped_kernel(x) ? composite::grouped_mm(x, weight, rows)
                               : ops::grouped_mm_by_groups(x, weight, rows);
}

Tensor grouped_mm_weight_grad(const Tensor& grad, const Tensor& x, at::IntArrayRef rows) {
  return has_grouped_kernel(x) ? composite::grouped_mm_weight_grad(grad, x, rows)
                               : ops::grouped_mm_weight_grad_by_groups(grad, x, rows);
}

#if defined(TITAN_CUDA_KERNELS)
/// `own` if there are kernels for the dtype of the first tensor, else `composed`.
template <auto own, auto composed>
struct Either;

template <class Result, class First, class... Rest, Result (*own)(First, Rest...),
          Result (*composed)(First, Rest...)>
struct Either<own, composed> {
  static Result call(First first, Rest... rest) {
    return fused::has_kernels(first) ? own(first, rest...) : composed(first, rest...);
  }
};
#define TITAN_CUDA_OPERATION(name) (&Either<&fused::name, &composite::name>::call)
#else
#define TITAN_CUDA_OPERATION(name) composite::name
#endif

}  // namespace

#if defined(TITAN_CUDA_KERNELS)
void* launch_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}
void launch_failed(const char* kernel, const char* why) {
  TITAN_CHECK(false, internal, "the GPU refused the kernel ", kernel, ": ", why);
}
#endif

TORCH_LIBRARY_IMPL(titan, CUDA, m) {
  m.impl("rms_norm_forward", TORCH_FN(TITAN_CUDA_OPERATION(rms_norm_forward)));
  m.impl("rms_norm_backward", TORCH_FN(TITAN_CUDA_OPERATION(rms_norm_backward)));
  m.impl("add_rms_norm_forward", TORCH_FN(TITAN_CUDA_OPERATION(add_rms_norm_forward)));
  m.impl("add_rms_norm_backward", TORCH_FN(TITAN_CUDA_OPERATION(add_rms_norm_backward)));
  m.impl("swiglu_forward", TORCH_FN(TITAN_CUDA_OPERATION(swiglu_forward)));
  m.impl("swiglu_backward", TORCH_FN(TITAN_CUDA_OPERATION(swiglu_backward)));
  m.impl("swiglu_backward_in_place", TORCH_FN(TITAN_CUDA_OPERATION(swiglu_backward_in_place)));
  m.impl("rope_rotate", TORCH_FN(TITAN_CUDA_OPERATION(rope_rotate)));
  m.impl("rope_into", TORCH_FN(TITAN_CUDA_OPERATION(rope_into)));
  m.impl("attention_forward", TORCH_FN(attention_forward));
  m.impl("attention_backward", TORCH_FN(attention_backward));
  m.impl("packed_attention_forward", TORCH_FN(packed_attention_forward));
  m.impl("packed_attention_backward", TORCH_FN(packed_attention_backward));
  m.impl("linear_cross_entropy", TORCH_FN(TITAN_CUDA_OPERATION(linear_cross_entropy)));
  m.impl("grouped_mm", TORCH_FN(grouped_mm));
  m.impl("grouped_mm_weight_grad", TORCH_FN(grouped_mm_weight_grad));
  m.impl("embedding_forward", TORCH_FN(composite::embedding_forward));
#if defined(TITAN_CUDA_KERNELS)
  m.impl("adamw_step_", TORCH_FN(fused::adamw_step));
  m.impl("scaled_adamw_step_", TORCH_FN(fused::scaled_adamw_step));
  m.impl("float8_of_tensor", TORCH_FN(fused::quantize_tensor));
  m.impl("float8_of_rows", TORCH_FN(fused::quantize_rows));
  m.impl("float8_by_scale", TORCH_FN(fused::quantize_by_scale));
#endif
  m.impl("embedding_backward", TORCH_FN(TITAN_CUDA_OPERATION(embedding_backward)));
}

}  // namespace titan::cuda
