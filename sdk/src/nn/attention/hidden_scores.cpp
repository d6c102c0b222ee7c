#include "hidden_scores.h"

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sum_type.h"

namespace titan::nn {
namespace {

using at::Tensor;

constexpr int64_t kQueries = 256;  // queries that share a matrix of scores
constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// (B, H, n, width) in the type of sums, the query heads of one key head together:
/// (B, KV, H/KV · n, width).
Tensor by_key_head(const Tensor& x, int64_t num_kv_heads) {
  return x.to(sum_type(x)).unflatten(1, {num_kv_heads, -1}).flatten(2, 3);
}
Tensor by_query_head(const Tensor& x, int64_t num_queries) {
  return x.unflatten(2, {-1, num_queries}).flatten(1, 2);
}

/// The rows of one matrix of scores.
struct Rows {
  int64_t first, count;
  Tensor of(const Tensor& x) const { return x.narrow(2, first, count); }
};
template <class Body>
void for_rows(int64_t num_queries, const Body& body) {
  for (int64_t first = 0; first < num_queries; first += kQueries)
    body(Rows{first, std::min(kQueries, num_queries - first)});
}

/// q (B, KV, G · n, hd), k (B, KV, m, hd) -> (B, KV, G · n, m), -inf for hidden keys.
Tensor scores(const Tensor& q, const Tensor& k, const Rows& rows, const Distance& distance,
              double scale) {
  const auto longs = q.options().dtype(at::kLong);
  const int64_t place = distance.query_place + rows.first;
  const Tensor away = at::arange(place, place + rows.count, longs).unsqueeze(1) -
                      at::arange(distance.key_place, distance.key_place + k.size(2), longs);
  const Tensor is_hidden = away.ge(distance.window) | away.lt(0);  // (n, m)
  return (q.matmul(k.transpose(2, 3)) * scale)
      .unflatten(2, {-1, rows.count})
      .masked_fill(is_hidden, kHidden)
      .flatten(2, 3);
}

Tensor empty_heads(const Tensor& q, int64_t width) {
  return at::empty({q.size(0), q.size(2), q.size(1), width}, q.options()).transpose(1, 2);
}

}  // namespace

ops::AttentionResult recent_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Distance& distance, double scale) {
  const int64_t kv_heads = k.size(1);
  const Tensor keys = by_key_head(k, kv_heads), values = by_key_head(v, kv_heads);
  const Tensor out = empty_heads(q, v.size(3)),
               logsumexp = at::empty(q.sizes().slice(0, 3), keys.options());
  for_rows(q.size(2), [&](const Rows& rows) {
    const Tensor s = scores(by_key_head(rows.of(q), kv_heads), keys, rows, distance, scale);
    const Tensor greatest =
        s.amax(-1, /*keepdim=*/true).clamp_min(-1e30);  // finite if no key is seen
    const Tensor weights = (s - greatest).exp(), sum = weights.sum(-1, /*keepdim=*/true);
    rows.of(out).copy_(by_query_head(weights.matmul(values) / sum.clamp_min(1e-30), rows.count));
    rows.of(logsumexp).copy_(by_query_head(sum.log() + greatest, rows.count).squeeze(-1));
  });
  return {out, logsumexp};
}

ops::AttentionGradients recent_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                        const Tensor& v, const ops::AttentionResult& whole,
                                        const Distance& distance, double scale) {
  const int64_t kv_heads = k.size(1);
  const Tensor keys = by_key_head(k, kv_heads), values = by_key_head(v, kv_heads);
  const Tensor dq = empty_heads(q, q.size(3)), dk = at::zeros(keys.sizes(), keys.options()),
               dv = at::zeros(values.sizes(), values.options());
  for_rows(q.size(2), [&](const Rows& rows) {
    const auto of = [&](const Tensor& x) { return by_key_head(rows.of(x), kv_heads); };
    const Tensor queries = of(q), dout = of(grad_out);
    const Tensor weights =
        (scores(queries, keys, rows, distance, scale) - of(whole.logsumexp.unsqueeze(-1))).exp();
    const Tensor mean = (dout * of(whole.out)).sum(-1, /*keepdim=*/true);
    const Tensor ds = weights * (dout.matmul(values.transpose(2, 3)) - mean) * scale;
    rows.of(dq).copy_(by_query_head(ds.matmul(keys), rows.count));
    dk.add_(ds.transpose(2, 3).matmul(queries));
    dv.add_(weights.transpose(2, 3).matmul(dout));
  });
  return {dq, dk.to(k.scalar_type()), dv.to(v.scalar_type())};
}

}  // namespace titan::nn
