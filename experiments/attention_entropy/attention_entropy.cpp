// How widely attention looks: the entropy of its weights, -Σ p ln p in nats, mean over heads and queries. 0: each query looks at
// one key; ln n: at all n alike.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <titan/error.h>
#include <titan/logger.h>
#include <titan/observe.h>
#include <titan/plugin.h>
#include <titan/value.h>

namespace {

constexpr std::string_view kPrefix = "attention_entropy/";

struct AttentionEntropyOptions {
  std::vector<std::string> layers = {"layers.0.attention", "layers.1.attention"};
  int64_t every = 1;                             // steps
  std::string file = "attention_entropy.jsonl";  // under job.dump_folder
};

/// Queries q and keys k (heads, S, hd) of one row: the entropy of each query's weights, (heads, S).
at::Tensor entropy(const at::Tensor& q, const at::Tensor& k, const at::Tensor& is_hidden) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor scores = (at::matmul(q, k.transpose(1, 2)) * scale).masked_fill(is_hidden, -INFINITY);
  const at::Tensor log_p = at::log_softmax(scores, -1);
  return -(log_p.exp() * log_p.masked_fill(is_hidden, 0)).sum(-1);
}

class AttentionEntropy final : public titan::Logger, public titan::TensorObserver {
 public:
  AttentionEntropy(const AttentionEntropyOptions& options, titan::LoggerContext) : options_(options) {}

  std::vector<titan::Observation> observations() const override {
    std::vector<titan::Observation> asked;
    for (const std::string& layer : options_.layers)
      asked.push_back({.modules = layer, .what = titan::Observed::attention, .every = options_.every});
    return asked;
  }

  std::vector<titan::ObservedNumber> observe(const titan::ObservedTensors& seen) override {
    const int64_t rows = seen.queries.size(0), heads = seen.queries.size(1), length = seen.queries.size(2);
    const at::Tensor keys = seen.keys.repeat_interleave(heads / seen.keys.size(1), 1);
    at::Tensor is_hidden = at::ones({length, length}, keys.options().dtype(at::kBool)).triu(1);
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {  // one at a time: heads · S² numbers
      at::Tensor hidden = is_hidden;
      if (seen.batch.documents.defined()) {
        const at::Tensor document = seen.batch.documents[row].to(keys.device());
        hidden = hidden | document.unsqueeze(1).ne(document.unsqueeze(0));
      }
      sum += entropy(seen.queries[row].to(at::kDouble), keys[row].to(at::kDouble), hidden).sum().item<double>();
    }
    return {{std::string(kPrefix) + std::string(seen.module), sum, static_cast<double>(rows * heads * length)}};
  }

  void start(const titan::RunInfo& run) override {
    if (run.rank != 0) return;
    out_.open(run.dump_folder / options_.file, run.resumed_step > 0 ? std::ios::app : std::ios::trunc);
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
  std::ofstream out_;  // of the rank that logs
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = AttentionEntropyOptions;
  plugin.add<AttentionEntropy>("maintainers/attention_entropy", "How widely attention looks, in nats.")
      .option("layers", &O::layers, "Patterns of the layers that attend")
      .option("every", &O::every, "Steps from one look to the next").at_least(1)
      .option("file", &O::file, "Name of the file under job.dump_folder");
}
