// The spread of attention: the entropy of its weights, -Σ p ln p in nats, mean over heads and
// queries. 0: each query attends to one key; ln n: to all n keys equally. A sink counts as one more
// key with its p.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/special_entr.h>
#include <ATen/ops/zeros_like.h>

#include <titan/error.h>
#include <titan/logger.h>
#include <titan/nn/attention_layer.h>
#include <titan/observe.h>
#include <titan/plugin.h>
#include <titan/value.h>

namespace {

using at::Tensor;

constexpr std::string_view kPrefix = "attention_entropy/";
constexpr int64_t kKeys = 32;  // number of keys per block of weights

struct AttentionEntropyOptions {
  std::vector<std::string> layers = {"layers.0.attention", "layers.1.attention"};
  int64_t every = 1;                             // steps
  std::string file = "attention_entropy.jsonl";  // under job.dump_folder
};

/// The attention of queries to all keys or a part of them. Both tensors (1, heads, n).
struct Looks {
  Tensor entropy;    ///< of the weights within this part
  Tensor logsumexp;  ///< of its scores: the weight of this part relative to others
  Looks of(int64_t first, int64_t count) const {
    return {entropy.narrow(2, first, count), logsumexp.narrow(2, first, count)};
  }
  void set(const Looks& other) const {
    entropy.copy_(other.entropy);
    logsumexp.copy_(other.logsumexp);
  }
};

/// Joins two parts: the entropy between them, and that within each, weighted by its share.
Looks join(const Looks& a, const Looks& b) {
  const Tensor all = at::logaddexp(a.logsumexp, b.logsumexp);
  const Tensor p = (a.logsumexp - all).exp(), q = (b.logsumexp - all).exp();
  return {p * a.entropy + at::special_entr(p) + q * b.entropy + at::special_entr(q), all};
}

/// Queries q (1, H, n, hd) and keys k (1, KV, m, hd), by the layer's own rule: applied to unit
/// vectors as values, it returns the weights, including its masks and transforms of scores.
Looks look(const titan::nn::AttentionRule& rule, const Tensor& q, const Tensor& k,
           const titan::nn::AttentionBlock& block) {
  const Tensor units = at::eye(k.size(2), k.options()).expand({1, k.size(1), -1, -1}).contiguous();
  const titan::ops::AttentionResult weights = rule.forward(q, k, units, block);
  const Tensor sees_none = weights.logsumexp.eq(-INFINITY);  // weights are arbitrary there
  return {at::special_entr(weights.out).sum(-1).masked_fill(sees_none, 0), weights.logsumexp};
}

/// The sum of the entropies of all queries of a document.
double entropy_of(const titan::nn::AttentionRule& rule, const Tensor& q, const Tensor& k) {
  const int64_t length = q.size(2);
  const Tensor places = at::arange(length), numbers = q.select(3, 0);
  const Looks all = {at::empty_like(numbers), at::empty_like(numbers)};
  // from the last keys to the first: queries after a block of keys have been set by then
  for (int64_t first = (length - 1) / kKeys * kKeys; first >= 0; first -= kKeys) {
    const int64_t count = std::min(kKeys, length - first), next = first + count;
    const auto look_at_these = [&](int64_t query, int64_t num_queries) {
      titan::nn::AttentionBlock block{.causal = query == first};
      if (rule.needs_places()) {
        block.query_places = places.narrow(0, query, num_queries);
        block.key_places = places.narrow(0, first, count);
      }
      return look(rule, q.narrow(2, query, num_queries), k.narrow(2, first, count), block);
    };
    all.of(first, count).set(look_at_these(first, count));
    if (next == length) continue;
    const Looks later = all.of(next, length - next);
    later.set(join(later, look_at_these(next, length - next)));
  }
  const Tensor sinks = rule.sinks();
  if (!sinks.defined()) return all.entropy.sum().item<double>();
  const Tensor scores = sinks.to(at::kDouble).view({1, -1, 1}).expand_as(numbers);
  return join(all, {at::zeros_like(scores), scores}).entropy.sum().item<double>();
}

/// As entropy_of, for a row. `documents`, int32 (S) in host memory, do not see each other;
/// undefined: one document.
double entropy_of_row(const titan::nn::AttentionRule& rule, const Tensor& q, const Tensor& k,
                      const Tensor& documents) {
  if (!documents.defined()) return entropy_of(rule, q, k);
  const Tensor numbers = documents.contiguous();
  const int32_t* const number = numbers.const_data_ptr<int32_t>();
  double sum = 0;
  for (int64_t first = 0, end = 0; first < numbers.numel(); first = end) {
    while (end < numbers.numel() && number[end] == number[first]) ++end;
    sum += entropy_of(rule, q.narrow(2, first, end - first), k.narrow(2, first, end - first));
  }
  return sum;
}

class AttentionEntropy final : public titan::Logger, public titan::TensorObserver {
 public:
  AttentionEntropy(const AttentionEntropyOptions& options, titan::LoggerContext)
      : options_(options) {}

  std::vector<titan::Observation> observations() const override {
    std::vector<titan::Observation> asked;
    for (const std::string& layer : options_.layers)
      asked.push_back(
          {.modules = layer, .what = titan::Observed::attention, .every = options_.every});
    return asked;
  }

  std::vector<titan::ObservedNumber> observe(const titan::ObservedTensors& seen) override {
    const int64_t rows = seen.queries.size(0), heads = seen.queries.size(1),
                  length = seen.queries.size(2);
    const Tensor& documents = seen.batch.documents;
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row)
      sum += entropy_of_row(*seen.rule, seen.queries.narrow(0, row, 1).to(at::kDouble),
                            seen.keys.narrow(0, row, 1).to(at::kDouble),
                            documents.defined() ? documents[row] : Tensor());
    return {{std::string(kPrefix) + std::string(seen.module), sum,
             static_cast<double>(rows * heads * length)}};
  }

  void start(const titan::RunInfo& run) override {
    if (run.rank != 0) return;
    out_.open(run.dump_folder / options_.file,
              run.resumed_step > 0 ? std::ios::app : std::ios::trunc);
    TITAN_CHECK(out_, io, "cannot write '", (run.dump_folder / options_.file).string(), "'");
  }
  void log(int64_t step, std::span<const titan::Scalar> scalars) override {
    titan::Value line = titan::Value::map({{"step", step}});
    for (const titan::Scalar& scalar : scalars)
      if (scalar.tag.starts_with(kPrefix)) line[scalar.tag.substr(kPrefix.size())] = scalar.value;
    if (out_.is_open() && line.as_map().size() > 1) out_ << titan::to_json(line) << std::endl;
  }
  void finish(titan::RunOutcome) noexcept override { out_.close(); }

 private:
  AttentionEntropyOptions options_;
  std::ofstream out_;  // open on the rank that logs
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = AttentionEntropyOptions;
  plugin
      .add<AttentionEntropy>("maintainers/attention_entropy",
                             "Entropy of attention weights, in nats.")
      .option("layers", &O::layers, "Patterns of attention layers")
      .option("every", &O::every, "Steps between observations")
      .at_least(1)
      .option("file", &O::file, "Name of the file under job.dump_folder");
}
