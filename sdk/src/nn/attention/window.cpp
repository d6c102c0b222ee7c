#include "window.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty_like.h>

#include "sum_type.h"

namespace titan::nn {
namespace {

using at::Tensor;
using ops::AttentionGradients;
using ops::AttentionOptions;
using ops::AttentionResult;

/// A run of `length` tokens, cut into pieces of `window` tokens.
struct Pieces {
  int64_t window, length;
  int64_t count() const { return (length + window - 1) / window; }
  int64_t padded() const { return count() * window; }

  /// (B, heads, n, width) -> (B, pieces, heads, window, width), zeros after the last token.
  Tensor cut(const Tensor& x) const {
    Tensor by_token = x.transpose(1, 2);  // (B, n, heads, width)
    if (padded() > length)
      by_token = at::constant_pad_nd(by_token, {0, 0, 0, 0, 0, padded() - length});
    return by_token.unflatten(1, {count(), window}).transpose(2, 3);
  }
  /// One number per query: (B, heads, n) -> (B, pieces, heads, window).
  Tensor cut_numbers(const Tensor& x) const { return cut(x.unsqueeze(3)).squeeze(4); }

  /// Back from (B, pieces, heads, window, width), over (B, n, heads, width) storage.
  Tensor joined(const Tensor& pieces) const {
    return pieces.transpose(2, 3).flatten(1, 2).narrow(1, 0, length).contiguous().transpose(1, 2);
  }
  Tensor joined_numbers(const Tensor& pieces) const {
    return joined(pieces.unsqueeze(4)).squeeze(3).contiguous();
  }
};

/// Makes each piece a row of a batch.
Tensor as_rows(const Tensor& pieces) {
  return pieces.flatten(0, 1);
}
Tensor as_pieces(const Tensor& rows, const Tensor& like) {
  return rows.unflatten(0, {like.size(0), -1});
}

constexpr int64_t kToken = 3;  // dimension of tokens in pieces

/// Rows with their tokens in reverse order. ATen's flip has no kernel for the meta device.
Tensor turned(const Tensor& rows) {
  return rows.is_meta() ? at::empty_like(rows) : rows.flip(kToken - 1);
}

/// The queries of all pieces except the first, and the keys of the pieces before them, reversed
/// into rows of causal attention. The last token of a piece sees nothing of the piece before it.
Tensor queries_backwards(const Tensor& pieces) {
  const int64_t count = pieces.size(1), window = pieces.size(kToken);
  return turned(as_rows(pieces.narrow(1, 1, count - 1).narrow(kToken, 0, window - 1)));
}
Tensor keys_backwards(const Tensor& pieces) {
  const int64_t count = pieces.size(1), window = pieces.size(kToken);
  return turned(as_rows(pieces.narrow(1, 0, count - 1).narrow(kToken, 1, window - 1)));
}
/// The views of pieces that results for these queries are written to.
Tensor of_queries(const Tensor& pieces) {
  return pieces.narrow(1, 1, pieces.size(1) - 1).narrow(kToken, 0, pieces.size(kToken) - 1);
}
Tensor of_keys(const Tensor& pieces) {
  return pieces.narrow(1, 0, pieces.size(1) - 1).narrow(kToken, 1, pieces.size(kToken) - 1);
}
/// Rows of results, reversed again to the order of tokens.
Tensor forwards(const Tensor& rows, const Tensor& like) {
  return as_pieces(turned(rows), like);
}

}  // namespace

AttentionResult window_forward(const Tensor& q, const Tensor& k, const Tensor& v, int64_t window,
                               double scale) {
  const AttentionOptions options{.causal = true, .scale = scale};
  const Pieces pieces{.window = window, .length = q.size(2)};
  if (pieces.count() <= 1) return ops::attention_forward(q, k, v, options);
  const Tensor qs = pieces.cut(q), ks = pieces.cut(k), vs = pieces.cut(v);
  const AttentionResult own =
      ops::attention_forward(as_rows(qs), as_rows(ks), as_rows(vs), options);
  const AttentionResult total = {as_pieces(own.out.to(sum_type(q)), q),
                                 as_pieces(own.logsumexp.contiguous(), q)};
  if (window > 1) {
    const AttentionResult before = ops::attention_forward(queries_backwards(qs), keys_backwards(ks),
                                                          keys_backwards(vs), options);
    ops::merge_attention({of_queries(total.out), of_queries(total.logsumexp)},
                         {forwards(before.out, q), forwards(before.logsumexp, q)});
  }
  return {pieces.joined(total.out).to(q.scalar_type()), pieces.joined_numbers(total.logsumexp)};
}

AttentionGradients window_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                   const Tensor& v, const AttentionResult& whole, int64_t window,
                                   double scale) {
  const AttentionOptions options{.causal = true, .scale = scale};
  const Pieces pieces{.window = window, .length = q.size(2)};
  if (pieces.count() <= 1)
    return ops::attention_backward(grad_out, q, k, v, {whole.out, whole.logsumexp.contiguous()},
                                   options);
  const Tensor qs = pieces.cut(q), ks = pieces.cut(k), vs = pieces.cut(v),
               douts = pieces.cut(grad_out), outs = pieces.cut(whole.out),
               logsumexps = pieces.cut_numbers(whole.logsumexp);
  const AttentionGradients own =
      ops::attention_backward(as_rows(douts), as_rows(qs), as_rows(ks), as_rows(vs),
                              {as_rows(outs), as_rows(logsumexps).contiguous()}, options);
  const at::ScalarType type = sum_type(q);
  const Tensor dq = as_pieces(own.q.to(type), q), dk = as_pieces(own.k.to(type), q),
               dv = as_pieces(own.v.to(type), q);
  if (window > 1) {
    const AttentionGradients before = ops::attention_backward(
        queries_backwards(douts), queries_backwards(qs), keys_backwards(ks), keys_backwards(vs),
        {queries_backwards(outs), queries_backwards(logsumexps).contiguous()}, options);
    of_queries(dq).add_(forwards(before.q, q));
    of_keys(dk).add_(forwards(before.k, q));
    of_keys(dv).add_(forwards(before.v, q));
  }
  const auto joined = [&](const Tensor& x) { return pieces.joined(x).to(q.scalar_type()); };
  return {joined(dq), joined(dk), joined(dv)};
}

}  // namespace titan::nn
