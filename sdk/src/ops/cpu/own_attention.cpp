#include "own_attention.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <titan/error.h>

namespace titan::ops::cpu {
namespace {

using at::Tensor;

/// Widest head of these loops: with wider ones a block of keys exceeds the first-level caches.
constexpr int64_t kWidestHead = 128;

/// Minimum number of tasks of a sufficiently long backward pass: fixed, since the order of its sums
/// depends on the number of tasks.
constexpr int64_t kFewestTasks = 16;

const AttentionKernels& kernels_for(const Kernels& kernels, const Tensor& q) {
  return q.scalar_type() == at::kBFloat16 ? kernels.attention_bf16 : kernels.attention;
}

/// Row `row` of head (b, h) of a (B, heads, S, hd) tensor.
char* row_of(const Tensor& x, int64_t b, int64_t h, int64_t row = 0) {
  const int64_t offset = b * x.stride(0) + h * x.stride(1) + row * x.stride(2);
  return static_cast<char*>(const_cast<void*>(x.const_data_ptr())) + offset * x.element_size();
}
HeadRows rows_of(const Tensor& x, int64_t b, int64_t h) {
  return {row_of(x, b, h), x.stride(2)};
}

/// Query head h of row b with the key head it shares.
AttentionHead head_of(const Tensor& q, const Tensor& k, const Tensor& v, int64_t b, int64_t h,
                      bool causal, double scale) {
  const int64_t kv = h / (q.size(1) / k.size(1));
  return {.q = rows_of(q, b, h),
          .k = rows_of(k, b, kv),
          .v = rows_of(v, b, kv),
          .num_queries = q.size(2),
          .num_keys = k.size(2),
          .dim = q.size(3),
          .scale = static_cast<float>(scale),
          .causal = causal};
}

Tensor empty_like_heads(const Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

/// Calls body(task, scratch) for 0 ... num_tasks - 1. Each thread takes the next free task, since
/// tasks differ in size.
template <class Body>
void share_tasks(int64_t num_tasks, int64_t num_floats, const Body& body) {
  std::atomic<int64_t> next{0};
  const int64_t workers = std::min<int64_t>(num_tasks, at::get_num_threads());
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(num_floats));
    for (int64_t worker = begin; worker < end; ++worker)
      for (int64_t task = next++; task < num_tasks; task = next++) body(task, scratch.data());
  });
}

/// The backward pass of one key head, or a part of it. The blocks of queries of all heads that
/// share the key head are assigned to the parts in turn, so that long and short rows of a causal
/// mask are spread evenly.
struct Part {
  int64_t b, kv, index, count;
};

}  // namespace

bool has_own_attention(const Tensor& q, bool causal, double scale) {
  if (q.size(3) > kWidestHead || !(scale > 0)) return false;
  if (q.scalar_type() == at::kFloat) return true;
  const bool is_alone = q.size(2) == 1 && !causal;
  return q.scalar_type() == at::kBFloat16 && q.size(3) % 2 == 0 && !is_alone;
}

std::tuple<Tensor, Tensor> own_attention_forward(const Kernels& kernels, const Tensor& q,
                                                 const Tensor& k, const Tensor& v, bool causal,
                                                 double scale) {
  const int64_t batch = q.size(0), heads = q.size(1), num_queries = q.size(2);
  const Tensor out = empty_like_heads(q);
  const Tensor logsumexp = at::empty({batch, heads, num_queries}, q.options().dtype(at::kFloat));
  float* lse = logsumexp.mutable_data_ptr<float>();
  const int64_t block = kernels.attention_query_block;
  const int64_t num_blocks = (num_queries + block - 1) / block;
  const bool is_alone = num_queries == 1 && !causal && q.scalar_type() == at::kFloat;
  share_tasks(batch * heads * num_blocks, kernels.attention_scratch(q.size(3)),
              [&](int64_t task, float* scratch) {
                // the last blocks of a causal row cost most, so they run first
                const int64_t head = task % (batch * heads);
                const int64_t first = (num_blocks - 1 - task / (batch * heads)) * block;
                const int64_t b = head / heads, h = head % heads;
                const AttentionHead rows = head_of(q, k, v, b, h, causal, scale);
                if (is_alone) {
                  kernels.attention_one_query(rows, reinterpret_cast<float*>(row_of(out, b, h)),
                                              lse + head, scratch);
                } else {
                  kernels_for(kernels, q)
                      .forward(rows, first, std::min(block, num_queries - first),
                               row_of(out, b, h, first), out.stride(2),
                               lse + head * num_queries + first, scratch);
                }
              });
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> own_attention_backward(
    const Kernels& kernels, const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
    const Tensor& out, const Tensor& logsumexp, bool causal, double scale) {
  TITAN_ASSERT(dout.scalar_type() == q.scalar_type() && out.scalar_type() == q.scalar_type() &&
               logsumexp.scalar_type() == at::kFloat);
  const AttentionKernels& own = kernels_for(kernels, q);
  const Tensor dq = empty_like_heads(q), dk = empty_like_heads(k), dv = empty_like_heads(v);
  const int64_t heads = q.size(1), kv_heads = k.size(1), shared = heads / kv_heads;
  const int64_t num_queries = q.size(2), num_keys = k.size(2), dim = q.size(3);
  const float* lse = logsumexp.const_data_ptr<float>();
  const int64_t block = kernels.attention_backward_block;
  const int64_t num_blocks = (num_queries + block - 1) / block;
  const int64_t key_heads = q.size(0) * kv_heads;
  const int64_t num_parts =
      std::min((kFewestTasks + key_heads - 1) / key_heads, num_blocks * shared);
  // fp32 sums of dk, then of dv
  const int64_t num_sums =
      kernels.attention_padded_keys(num_keys) * kernels.attention_padded_dim(dim);

  const auto add_up = [&](const Part& part, float* sums, float* scratch) {
    std::fill_n(sums, 2 * num_sums, 0.0f);
    for (int64_t i = part.index; i < num_blocks * shared; i += part.count) {
      const int64_t h = part.kv * shared + i / num_blocks, first = i % num_blocks * block;
      const AttentionUpstream upstream{rows_of(dout, part.b, h), rows_of(out, part.b, h),
                                       lse + (part.b * heads + h) * num_queries};
      own.backward(head_of(q, k, v, part.b, h, causal, scale), upstream, first,
                   std::min(block, num_queries - first), row_of(dq, part.b, h, first), dq.stride(2),
                   sums, sums + num_sums, scratch);
    }
  };
  const auto store = [&](int64_t b, int64_t kv, const float* sums) {
    own.store(sums, num_keys, dim, static_cast<float>(scale), row_of(dk, b, kv), dk.stride(2));
    own.store(sums + num_sums, num_keys, dim, 1, row_of(dv, b, kv), dv.stride(2));
  };

  const int64_t num_floats = kernels.attention_scratch(dim);
  if (num_parts == 1) {
    share_tasks(key_heads, 2 * num_sums + num_floats, [&](int64_t task, float* scratch) {
      const int64_t b = task / kv_heads, kv = task % kv_heads;
      add_up({b, kv, 0, 1}, scratch, scratch + 2 * num_sums);
      store(b, kv, scratch);
    });
    return {dq, dk, dv};
  }
  const Tensor parts = at::empty({key_heads, num_parts, 2 * num_sums}, logsumexp.options());
  float* all = parts.mutable_data_ptr<float>();
  share_tasks(key_heads * num_parts, num_floats, [&](int64_t task, float* scratch) {
    const int64_t key_head = task / num_parts;
    add_up({key_head / kv_heads, key_head % kv_heads, task % num_parts, num_parts},
           all + task * 2 * num_sums, scratch);
  });
  share_tasks(key_heads, 0, [&](int64_t task, float*) {
    float* sums = all + task * num_parts * 2 * num_sums;
    for (int64_t part = 1; part < num_parts; ++part)
      kernels.add(sums, sums + part * 2 * num_sums, 2 * num_sums);
    store(task / kv_heads, task % kv_heads, sums);
  });
  return {dq, dk, dv};
}

}  // namespace titan::ops::cpu
