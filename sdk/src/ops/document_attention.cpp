// document_attention: lengths of documents, autograd, and a composition of attention's operations.
#include <titan/ops/document_attention.h>

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <titan/recompute.h>
#include <torch/library.h>

#include "attention_shapes.h"
#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

/// Appends the lengths of the runs of equal numbers to `lengths`.
void add_run_lengths(const int32_t* numbers, int64_t count, std::vector<int64_t>& lengths) {
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || numbers[i] != numbers[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
}

/// (B, heads, S, hd) over (B, S, heads, hd) storage -> (B S, heads, hd).
Tensor packed(const Tensor& heads) {
  return heads.transpose(1, 2).reshape(
      {heads.size(0) * heads.size(2), heads.size(1), heads.size(3)});
}
Tensor unpacked(const Tensor& tokens, int64_t rows) {
  return tokens.view({rows, tokens.size(0) / rows, tokens.size(1), tokens.size(2)}).transpose(1, 2);
}

/// Products of (n, hd) with (hd, n) and of (n, n) with (n, hdv) per head and document.
Operation as_operation(const Tensor& q, const Tensor& v, at::IntArrayRef lengths, bool causal) {
  double pairs = 0;
  for (const int64_t length : lengths)
    pairs += static_cast<double>(length) * static_cast<double>(length);
  const double flops = 2 * pairs * static_cast<double>(q.size(1) * (q.size(3) + v.size(3)));
  return {.kind = Operation::Kind::attention, .flops = causal ? flops / 2 : flops};
}

/// logsumexp is in the device's own form, for its backward.
AttentionResult forward_on_device(const Tensor& q, const Tensor& k, const Tensor& v,
                                  at::IntArrayRef lengths, bool causal, double scale) {
  static const auto operation =
      find_operation<PackedAttentionForward>("titan::packed_attention_forward");
  BelowAutograd guard;
  const int64_t width = common_width(q, v);
  auto [out, logsumexp] = operation.call(packed(widened(q, width)), packed(widened(k, width)),
                                         packed(widened(v, width)), lengths, causal, scale);
  return {narrowed(unpacked(out, q.size(0)), v.size(3)), logsumexp};
}

AttentionGradients backward_on_device(const Tensor& dout, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const AttentionResult& result,
                                      at::IntArrayRef lengths, bool causal, double scale) {
  static const auto operation =
      find_operation<PackedAttentionBackward>("titan::packed_attention_backward");
  BelowAutograd guard;
  const int64_t width = common_width(q, v);
  auto [dq, dk, dv] =
      operation.call(packed(widened(dout, width)), packed(widened(q, width)),
                     packed(widened(k, width)), packed(widened(v, width)),
                     packed(widened(result.out, width)), result.logsumexp, lengths, causal, scale);
  const auto heads = [&](const Tensor& tokens, int64_t own_width) {
    return narrowed(unpacked(tokens, q.size(0)), own_width);
  };
  return {heads(dq, q.size(3)), heads(dk, q.size(3)), heads(dv, v.size(3))};
}

struct DocumentAttention : torch::autograd::Function<DocumentAttention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::vector<int64_t>& lengths, bool causal, double scale) {
    const AttentionResult result = keepable_pair<AttentionResult>(
        as_operation(q, v, lengths, causal),
        [&] { return forward_on_device(q, k, v, lengths, causal, scale); });
    ctx->save_for_backward({q, k, v, result.out, result.logsumexp});
    ctx->saved_data["lengths"] = lengths;
    ctx->saved_data["causal"] = causal;
    ctx->saved_data["scale"] = scale;
    return result.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("document_attention");
    const variable_list saved = ctx->get_saved_variables();
    AttentionGradients d =
        backward_on_device(grads[0], saved[0], saved[1], saved[2], {saved[3], saved[4]},
                           ctx->saved_data["lengths"].toIntVector(),
                           ctx->saved_data["causal"].toBool(), ctx->saved_data["scale"].toDouble());
    return {d.q, d.k, d.v, Tensor(), Tensor(), Tensor()};
  }
};

/// Calls f(first, length) for each document.
template <class F>
void for_each_document(at::IntArrayRef lengths, const F& f) {
  int64_t first = 0;
  for (const int64_t length : lengths) {
    f(first, length);
    first += length;
  }
}

/// Tokens of x (T, heads, hd) as (1, heads, length, hd).
Tensor heads_of(const Tensor& x, int64_t first, int64_t length) {
  return x.narrow(0, first, length).transpose(0, 1).unsqueeze(0);
}

}  // namespace

std::vector<int64_t> document_lengths(const Tensor& documents, int64_t num_rows, int64_t seq_len) {
  TITAN_CHECK(documents.dim() == 2 && documents.size(0) == num_rows &&
                  documents.size(1) == seq_len && documents.scalar_type() == at::kInt &&
                  documents.is_cpu(),
              config, "attention: documents must be int32 (", num_rows, ", ", seq_len,
              ") in host memory, got ", documents.sizes(), " ", documents.scalar_type(), " on ",
              documents.device());
  const Tensor numbers = documents.contiguous();
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < num_rows; ++row)
    add_run_lengths(numbers.const_data_ptr<int32_t>() + row * seq_len, seq_len, lengths);
  return lengths;
}

Tensor document_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& documents, const AttentionOptions& options) {
  check_attention(q, k, v, options.causal);
  const int64_t rows = q.size(0), seq_len = q.size(2);
  TITAN_CHECK(k.size(2) == seq_len, config,
              "document_attention: documents need as many keys as queries, ", seq_len, ", got ",
              k.size(2));
  const std::vector<int64_t> lengths = document_lengths(documents, rows, seq_len);
  if (static_cast<int64_t>(lengths.size()) == rows || q.numel() == 0)
    return attention(q, k, v, options);
  const double scale = scale_of(q, options.scale);
  if (records_graph({&q, &k, &v}))
    return DocumentAttention::apply(q, k, v, lengths, options.causal, scale);
  return forward_on_device(q, k, v, lengths, options.causal, scale).out;
}

std::tuple<Tensor, Tensor> packed_attention_by_documents(const Tensor& q, const Tensor& k,
                                                         const Tensor& v, at::IntArrayRef lengths,
                                                         bool causal, double scale) {
  static const auto operation = find_operation<AttentionForward>("titan::attention_forward");
  const Tensor out = at::empty(q.sizes(), q.options());
  Tensor logsumexp;
  for_each_document(lengths, [&](int64_t first, int64_t length) {
    const auto [part, sums] = operation.call(heads_of(q, first, length), heads_of(k, first, length),
                                             heads_of(v, first, length), causal, scale);
    heads_of(out, first, length).copy_(part);
    if (!logsumexp.defined()) logsumexp = at::empty({q.size(1), q.size(0)}, sums.options());
    logsumexp.narrow(1, first, length).copy_(sums.select(0, 0));
  });
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> packed_attention_backward_by_documents(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, at::IntArrayRef lengths, bool causal, double scale) {
  static const auto operation = find_operation<AttentionBackward>("titan::attention_backward");
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const Tensor dq = like(q), dk = like(k), dv = like(v);
  for_each_document(lengths, [&](int64_t first, int64_t length) {
    const auto [dq_part, dk_part, dv_part] = operation.call(
        heads_of(dout, first, length), heads_of(q, first, length), heads_of(k, first, length),
        heads_of(v, first, length), heads_of(out, first, length),
        logsumexp.narrow(1, first, length).unsqueeze(0), causal, scale);
    heads_of(dq, first, length).copy_(dq_part);
    heads_of(dk, first, length).copy_(dk_part);
    heads_of(dv, first, length).copy_(dv_part);
  });
  return {dq, dk, dv};
}

}  // namespace titan::ops

TORCH_LIBRARY_IMPL(titan, CompositeExplicitAutograd, m) {
  m.impl("packed_attention_forward", TORCH_FN(titan::ops::packed_attention_by_documents));
  m.impl("packed_attention_backward", TORCH_FN(titan::ops::packed_attention_backward_by_documents));
}
