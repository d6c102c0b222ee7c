#include <titan/generation/sampler.h>

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

namespace titan {
namespace {

using at::Tensor;

constexpr double kRuledOut = -std::numeric_limits<double>::infinity();

/// Each id once: a negative logit is multiplied, a positive one divided.
Tensor penalised(const Tensor& logits, const std::vector<int32_t>& seen, double penalty) {
  if (penalty == 1 || seen.empty()) return logits;
  std::vector<int64_t> ids(seen.begin(), seen.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const Tensor index = at::tensor(ids);
  const Tensor old = logits.index_select(0, index);
  return logits.index_copy(0, index, at::where(old < 0, old * penalty, old / penalty));
}

Tensor within_top_k(const Tensor& logits, int64_t k) {
  if (k <= 0 || k >= logits.size(0)) return logits;
  const Tensor smallest = std::get<0>(at::topk(logits, k)).select(0, k - 1);
  return logits.masked_fill(logits < smallest, kRuledOut);
}

Tensor within_top_p(const Tensor& logits, double p) {
  if (p >= 1) return logits;
  const auto [ascending, order] = at::sort(logits, /*stable=*/false, 0, /*descending=*/false);
  Tensor is_out = at::cumsum(at::softmax(ascending, 0), 0) <= 1 - p;
  is_out.select(0, -1).fill_(false);  // the most likely token stays
  return logits.masked_fill(is_out.scatter(0, order, is_out), kRuledOut);
}

Tensor within_min_p(const Tensor& logits, double min_p) {
  if (min_p <= 0) return logits;
  const Tensor probabilities = at::softmax(logits, 0);
  return logits.masked_fill(probabilities < probabilities.amax() * min_p, kRuledOut);
}

}  // namespace

Tensor processed_logits(const Tensor& logits, const std::vector<int32_t>& seen,
                        const SamplingOptions& options) {
  const Tensor kept = penalised(logits, seen, options.repetition_penalty);
  if (!options.temperature) return kept;
  return within_min_p(
      within_top_p(within_top_k(kept / *options.temperature, options.top_k), options.top_p),
      options.min_p);
}

int32_t next_token(const Tensor& logits, const std::vector<int32_t>& seen,
                   const SamplingOptions& options, at::Generator& generator) {
  const Tensor kept = processed_logits(logits, seen, options);
  const Tensor chosen = options.temperature
                            ? at::multinomial(at::softmax(kept, 0), 1, false, generator)
                            : at::argmax(kept);
  return static_cast<int32_t>(chosen.item<int64_t>());
}

}  // namespace titan
