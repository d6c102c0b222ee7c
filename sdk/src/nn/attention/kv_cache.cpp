#include <titan/nn/kv_cache.h>

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/zeros.h>

#include <titan/error.h>
#include <titan/nn/attention_rules.h>

namespace titan::nn {
namespace {

using at::Tensor;

Tensor places(int64_t first, int64_t count) {
  return at::arange(first, first + count, at::TensorOptions().dtype(at::kLong));
}

/// The dtype of cached keys and values: 16-bit types are kept as fp32 on a CPU, whose 16-bit
/// products are slow.
at::ScalarType kept_dtype(const Tensor& x) {
  return x.is_cpu() && at::isReducedFloatingType(x.scalar_type()) ? at::kFloat : x.scalar_type();
}

/// The queries of one span over the keys of its sequence, of which the last are the span's own.
ops::AttentionResult attend_span(const Tensor& q, const Tensor& keys, const Tensor& values,
                                 int64_t start, const AttentionRule& rule) {
  const int64_t count = q.size(2);
  AttentionBlock block{.causal = count > 1};
  if (rule.needs_places()) {
    block.query_places = places(start, count);
    block.key_places = block.causal ? block.query_places : places(0, start + 1);
  }
  if (!block.causal) return rule.forward(q, keys, values, block);  // a token sees all of them
  const ops::AttentionResult own =
      rule.forward(q, keys.narrow(2, start, count), values.narrow(2, start, count), block);
  if (start == 0) return own;
  block.causal = false;
  if (rule.needs_places()) block.key_places = places(0, start);
  const ops::AttentionResult before =
      rule.forward(q, keys.narrow(2, 0, start), values.narrow(2, 0, start), block);
  // softmax over the union: each part's share is exp(its logsumexp - that of both)
  const Tensor both = at::logaddexp(own.logsumexp, before.logsumexp);
  const auto share = [&](const ops::AttentionResult& part) {
    return at::exp(part.logsumexp - both).unsqueeze(-1);
  };
  // a token that sees none of the older keys has an arbitrary finite output there
  return {(own.out * share(own) + before.out * share(before)).to(q.scalar_type()), both};
}

}  // namespace

KvCache::KvCache(int64_t num_slots, int64_t capacity)
    : num_slots_(num_slots), capacity_(capacity) {}
KvCache::~KvCache() = default;

void KvCache::begin(std::vector<CachedSpan> spans) {
  for (const CachedSpan& span : spans)
    TITAN_CHECK(span.slot >= 0 && span.slot < num_slots_ && span.start >= 0 && span.count > 0 &&
                    span.start + span.count <= capacity_,
                internal, "tokens ", span.start, " to ", span.start + span.count, " of sequence ",
                span.slot, " do not fit a cache of ", num_slots_, " x ", capacity_);
  spans_ = std::move(spans);
}

Tensor KvCache::attend(const void* layer, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionRule& rule) {
  TITAN_CHECK(q.size(0) == 1, internal, "a cache takes batches of one row, got ", q.size(0));
  Store& store = layers_[layer];
  if (!store.keys.defined()) {
    const auto options = k.options().dtype(kept_dtype(k));
    store.keys = at::empty({num_slots_, k.size(1), capacity_, k.size(3)}, options);
    store.values = at::empty({num_slots_, v.size(1), capacity_, v.size(3)}, options);
  }
  const Tensor queries = q.to(store.keys.scalar_type()), sinks = rule.sinks();
  // so that transpose(1, 2) is contiguous, as the layers expect
  const Tensor out =
      at::zeros({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options()).transpose(1, 2);
  for (const CachedSpan& span : spans_) {
    const Tensor keys = store.keys.narrow(0, span.slot, 1);
    const Tensor values = store.values.narrow(0, span.slot, 1);
    keys.narrow(2, span.start, span.count).copy_(k.narrow(2, span.first, span.count));
    values.narrow(2, span.start, span.count).copy_(v.narrow(2, span.first, span.count));
    const int64_t seen = span.start + span.count;
    ops::AttentionResult result =
        attend_span(queries.narrow(2, span.first, span.count), keys.narrow(2, 0, seen),
                    values.narrow(2, 0, seen), span.start, rule);
    if (sinks.defined()) result = join_sinks(result, sinks);
    out.narrow(2, span.first, span.count).copy_(result.out);
  }
  return out;
}

void KvCache::copy(int64_t from, int64_t to, int64_t count) {
  for (auto& [layer, store] : layers_)
    for (const Tensor& kept : {store.keys, store.values})
      kept.select(0, to).narrow(1, 0, count).copy_(kept.select(0, from).narrow(1, 0, count));
}

}  // namespace titan::nn
