// Gives CUDA the operations of titan/ops, composed from ATen's.
#include <ATen/cuda/CUDAContextLight.h>
#include <torch/library.h>

#include "composite_ops.h"

namespace titan::cuda {
namespace {

using at::Tensor;
using composite::AttentionPath;

/// The fused kernels read rows of heads in units of this many bytes.
constexpr int64_t kAlignment = 16;
constexpr int64_t kWidestFlashHead = 256;
constexpr int kFirstWithFlash = 8;  // Ampere; bfloat16 in hardware starts there too

AttentionPath path_for(const Tensor& q) {
  const int major = at::cuda::getDeviceProperties(q.device().index())->major;
  const at::ScalarType type = q.scalar_type();
  const bool is_narrow = type == at::kHalf || type == at::kBFloat16;
  const int64_t head_dim = q.size(3);
  const bool is_aligned = head_dim * static_cast<int64_t>(q.element_size()) % kAlignment == 0;
  if (!is_aligned) return AttentionPath::math;
  if (is_narrow && major >= kFirstWithFlash && head_dim <= kWidestFlashHead)
    return AttentionPath::flash;
  if (type == at::kFloat || type == at::kHalf || (is_narrow && major >= kFirstWithFlash))
    return AttentionPath::memory_efficient;
  return AttentionPath::math;
}

std::tuple<Tensor, Tensor> attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                             bool causal, double scale) {
  return composite::attention_forward(path_for(q), q, k, v, causal, scale);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout, const Tensor& q,
                                                      const Tensor& k, const Tensor& v,
                                                      const Tensor& out, const Tensor& logsumexp,
                                                      bool causal, double scale) {
  return composite::attention_backward(path_for(q), dout, q, k, v, out, logsumexp, causal, scale);
}

}  // namespace

TORCH_LIBRARY_IMPL(titan, CUDA, m) {
  m.impl("rms_norm_forward", TORCH_FN(composite::rms_norm_forward));
  m.impl("rms_norm_backward", TORCH_FN(composite::rms_norm_backward));
  m.impl("swiglu_forward", TORCH_FN(composite::swiglu_forward));
  m.impl("swiglu_backward", TORCH_FN(composite::swiglu_backward));
  m.impl("rope_rotate", TORCH_FN(composite::rope_rotate));
  m.impl("attention_forward", TORCH_FN(attention_forward));
  m.impl("attention_backward", TORCH_FN(attention_backward));
  m.impl("linear_cross_entropy", TORCH_FN(composite::linear_cross_entropy));
  m.impl("embedding_forward", TORCH_FN(composite::embedding_forward));
  m.impl("embedding_backward", TORCH_FN(composite::embedding_backward));
}

}  // namespace titan::cuda
