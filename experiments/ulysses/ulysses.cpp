// Ulysses: splits each sequence over ranks. Before attention an all-to-all gives each rank all tokens
// of some heads, after it another one gives back its own tokens of all heads. Jacobs et al., 2023
// (arXiv:2309.14509).
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <titan/dist/collectives.h>
#include <titan/error.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/step_module.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace ulysses {
namespace {

using namespace titan;  // NOLINT: small
using at::Tensor;

constexpr const char* kName = "maintainers/ulysses";

struct Options {
  int64_t degree = 1;
};

/// Runs the layer's own kernel on all tokens of this rank's heads.
class Kernel final : public nn::AttentionKernel {
 public:
  Kernel(std::unique_ptr<nn::AttentionKernel> inner, dist::Group group)
      : inner_(std::move(inner)), group_(std::move(group)) {}

  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& batch) override {
    if (batch.places.row_length == 0) return inner_->attend(q, k, v, batch);  // whole rows
    const int64_t size = group_.size(), n = q.size(2);
    const auto heads_by_rank = [&](const Tensor& x) {  // (B, H, n, w) -> (P, B, n, H/P · w)
      return x.unflatten(1, {size, -1}).permute({1, 0, 3, 2, 4}).flatten(3);
    };
    const std::vector<Tensor> sent = {heads_by_rank(q), heads_by_rank(k), heads_by_rank(v)};
    const Tensor received = dist::all_to_all(at::cat(sent, 3), group_);  // tokens by rank
    const Tensor whole = received.transpose(0, 1).flatten(1, 2);         // (B, S, sum of H/P · w)
    int64_t first = 0;
    const auto next_heads = [&](const Tensor& packed, const Tensor& like) {  // (B, H/P, S, w)
      const Tensor part = whole.narrow(2, first, packed.size(3));
      first += packed.size(3);
      return part.unflatten(2, {-1, like.size(3)}).transpose(1, 2);
    };
    const Tensor own_q = next_heads(sent[0], q), own_k = next_heads(sent[1], k),
                 own_v = next_heads(sent[2], v);
    const Tensor out = inner_->attend(own_q, own_k, own_v, batch);
    const Tensor tokens_by_rank = out.unflatten(2, {size, n}).permute({2, 0, 3, 1, 4});
    return dist::all_to_all(tokens_by_rank, group_)  // (P, B, n, H/P, w), heads by rank
        .permute({1, 0, 3, 2, 4})
        .flatten(1, 2);
  }

 private:
  std::unique_ptr<nn::AttentionKernel> inner_;
  dist::Group group_;
};

/// Works on its own axis "ulysses", or, with a degree of 1, on the axis "cp". Ranks of "cp" hold
/// different tokens by definition: data parallelism sums gradients and the trainer sums losses over
/// them. Ranks of an added axis do not, so there this class sums both.
class Ulysses final : public Parallelism, public BatchSplitter, public ExecutorWrapper {
 public:
  Ulysses(const Options& options, TransformContext context)
      : has_own_axis_(options.degree > 1),
        group_(context.mesh.group(has_own_axis_ ? "ulysses" : "cp")) {}

  Phase phase() const override { return Phase::sequence; }

  void apply(ModelPart& part, const TransformContext& context) override {
    part_ = &part;
    device_ = context.device.device();
    if (group_.size() == 1) return;
    TITAN_CHECK(!has_own_axis_ || context.mesh.group("cp").size() == 1, config, kName,
                " and context parallelism both split sequences; leave out one of them");
    bool has_attention = false;
    part.visit_modules([&](const std::string& path, nn::Module& module) {
      TITAN_CHECK(!has_own_axis_ || !dynamic_cast<nn::StepModule*>(&module), config, "'", path,
                  "' counts tokens over the ranks of 'loss', to which the axis of ", kName,
                  " does not belong; set its degree to 1, parallelism.context_parallel = \"", kName,
                  "\" and parallelism.context_parallel_degree = ", group_.size());
      if (auto* attention = dynamic_cast<nn::AttentionLayer*>(&module)) {
        wrap(*attention, path, context.mesh.group("tp").size());
        has_attention = true;
      }
    });
    TITAN_CHECK(has_attention || context.pipeline, config, kName,
                " found no nn::AttentionLayer whose heads it could exchange; leave it out");
  }

  /// tokens (rows, S) -> this rank's (rows, S/P): piece r of each row. Documents stay whole.
  Batch split(const Batch& batch) const override {
    if (group_.size() == 1) return batch;
    const Tensor& any = batch.tokens.defined() ? batch.tokens : batch.labels;
    const int64_t size = group_.size(), seq_len = any.size(1), n = seq_len / size;
    TITAN_CHECK(n * size == seq_len && n > 0, config, "a sequence of ", seq_len,
                " tokens cannot be split over ", size, " ranks of ", kName, "; set seq_len to ",
                (n + 1) * size);
    const auto share = [&](const Tensor& x) {
      return x.defined() ? x.narrow(1, group_.rank() * n, n).contiguous() : Tensor();
    };
    Batch part = batch;
    part.tokens = share(batch.tokens);
    part.labels = share(batch.labels);
    part.is_padding = share(batch.is_padding);
    const Tensor places =
        at::arange(seq_len, at::TensorOptions().dtype(at::kLong).device(any.device()));
    part.places.row_length = seq_len;
    part.places.in_row = share(places.unsqueeze(0)).squeeze(0);
    if (!batch.positions.defined()) part.num_positions = seq_len;
    part.positions = batch.positions.defined()
                         ? share(batch.positions)
                         : part.places.in_row.unsqueeze(0).expand({any.size(0), -1});
    return part;
  }

  /// Refuses optimizers that work inside the backward, when gradients are not yet summed.
  bool undoes_steps() const override { return has_own_axis_; }
  StepLoss forward_backward(const StepBatches& batches) override {
    const StepLoss loss = summed(inner().forward_backward(batches));
    if (has_own_axis_)
      for (const nn::Parameter* parameter : part_->parameters())
        if (const Tensor gradient = parameter->grad(); gradient.defined())
          group_.all_reduce(gradient, dist::Reduce::sum).wait();
    return loss;
  }
  StepLoss forward(const StepBatches& batches) override { return summed(inner().forward(batches)); }

 private:
  void wrap(nn::AttentionLayer& attention, const std::string& path, int64_t tensor_ranks) {
    const int64_t q = attention.num_heads(), kv = attention.num_kv_heads(),
                  ranks = group_.size() * tensor_ranks;
    TITAN_CHECK(q % ranks == 0 && kv % ranks == 0, config, "'", path, "' has ", q,
                " query heads and ", kv, " key heads, which cannot be divided over ",
                group_.size(), " ranks of ", kName, " x ", tensor_ranks,
                " of tensor parallelism; choose degrees whose product divides both, or context "
                "parallelism, which splits no heads");
    TITAN_CHECK(attention.head_parameters().empty(), config, "'", path,
                "' has a weight per head, which its kernel reads for all heads; ", kName,
                " supports attention without sinks; use context parallelism");
    attention.core().wrap_kernel(
        kName,
        [this](std::unique_ptr<nn::AttentionKernel> inner) {
          return std::make_unique<Kernel>(std::move(inner), group_);
        },
        "'" + path + "'");
  }

  StepLoss summed(StepLoss loss) const {
    if (!has_own_axis_) return loss;
    if (loss.device_loss.defined()) {
      loss.device_loss = loss.device_loss.clone();
      group_.all_reduce(loss.device_loss, dist::Reduce::sum).wait();
    } else {
      loss.normalized_sum = group_.all_reduce(loss.normalized_sum, dist::Reduce::sum, device_);
    }
    return loss;
  }

  bool has_own_axis_;
  dist::Group group_;
  ModelPart* part_ = nullptr;
  c10::Device device_ = c10::kCPU;
};

void check_length(const Options& own, const JobView& job, RuleReport& report) {
  const int64_t seq_len = job.core("training.seq_len").as_integer();
  const int64_t unit = own.degree * job.ranks("tp");
  if (seq_len % unit != 0)
    report.error("training.seq_len",
                 "training.seq_len = " + std::to_string(seq_len) +
                     " is not divisible by degree x tensor_parallel_degree = " +
                     std::to_string(unit) + " of " + kName,
                 "nearest: " + std::to_string((seq_len / unit + 1) * unit));
}

}  // namespace
}  // namespace ulysses

TITAN_PLUGIN(plugin) {
  using ulysses::Options;
  plugin
      .add<ulysses::Ulysses>("maintainers/ulysses",
                             "Splits each sequence over ranks, which exchange heads for tokens.")
      .option("degree", &Options::degree,
              "Ranks of its own axis; 1: the ranks of parallelism.context_parallel_degree")
      .at_least(1)
      .check(ulysses::check_length)
      .axes([](const Options& options, titan::AxisPlan& plan) {
        plan.add("ulysses", options.degree);
      });
}
