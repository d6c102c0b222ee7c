// Attention within documents by ATen's flash kernel for sequences of different lengths.
#include <algorithm>

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <titan/ops/document_attention.h>

#include "composite_ops.h"
#include "running_sums.h"

namespace titan::composite {
namespace {

Tensor with_contiguous_last(const Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

int64_t longest(at::IntArrayRef lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

bool is_by_flash(AttentionPath path, const Tensor& q) {
  return path == AttentionPath::flash && q.numel() > 0;
}

}  // namespace

std::tuple<Tensor, Tensor> packed_attention_forward(AttentionPath path, const Tensor& q,
                                                    const Tensor& k, const Tensor& v,
                                                    at::IntArrayRef lengths, bool causal,
                                                    double scale) {
  if (!is_by_flash(path, q))
    return ops::packed_attention_by_documents(q, k, v, lengths, causal, scale);
  const Tensor begins = running_sums(lengths, SumsFrom::zero, q.device());
  const auto result = at::_flash_attention_forward(
      with_contiguous_last(q), with_contiguous_last(k), with_contiguous_last(v), begins, begins,
      longest(lengths), longest(lengths), /*dropout_p=*/0.0, causal,
      /*return_debug_mask=*/false, scale);
  return {std::get<0>(result).contiguous(), std::get<1>(result)};
}

std::tuple<Tensor, Tensor, Tensor> packed_attention_backward(AttentionPath path, const Tensor& dout,
                                                             const Tensor& q, const Tensor& k,
                                                             const Tensor& v, const Tensor& out,
                                                             const Tensor& logsumexp,
                                                             at::IntArrayRef lengths, bool causal,
                                                             double scale) {
  if (!is_by_flash(path, q))
    return ops::packed_attention_backward_by_documents(dout, q, k, v, out, logsumexp, lengths,
                                                       causal, scale);
  const Tensor begins = running_sums(lengths, SumsFrom::zero, q.device());
  // without dropout the generator state is unused, but the operation requires tensors for it
  const Tensor no_random = at::empty({2}, q.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      with_contiguous_last(dout), with_contiguous_last(q), with_contiguous_last(k),
      with_contiguous_last(v), out.contiguous(), logsumexp, begins, begins, longest(lengths),
      longest(lengths), /*dropout_p=*/0.0, causal, no_random, no_random, scale);
  return {dq.contiguous(), dk.contiguous(), dv.contiguous()};
}

}  // namespace titan::composite
