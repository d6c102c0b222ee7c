#include "kernel.h"

#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/error.h>
#include <titan/nn/attention_rules.h>
#include <titan/ops/attention.h>
#include <titan/recompute.h>

#include "blocks.h"
#include "online_attention.h"

namespace titan::context_parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// One call of the kernel: the visible blocks by source, and the exchange. Kept by the graph.
struct Call : torch::CustomClassHolder {
  std::vector<std::vector<Block>> blocks;
  std::shared_ptr<const Exchange> exchange;
  std::shared_ptr<const nn::AttentionRule> rule;
  // by source: indices of its tokens in their row, in host memory; empty unless the rule needs them
  std::vector<Tensor> places;
  Tensor sinks;  // of the rule, detached; undefined: none
  int64_t rank = 0;

  /// The rule's view of `block`, between the queries here and the keys of `source`.
  nn::AttentionBlock seen(const Block& block, int64_t source) const;
  /// FLOPs of the forward: two products per block, half of them under a causal mask.
  double flops(const Tensor& q, int64_t value_width) const;
};
using CallPtr = c10::intrusive_ptr<Call>;

double Call::flops(const Tensor& q, int64_t value_width) const {
  double total = 0;
  for (const std::vector<Block>& of_source : blocks)
    for (const Block& block : of_source) {
      const double pairs = static_cast<double>(block.rows.count * block.queries.count) *
                           static_cast<double>(block.keys.count * q.size(1));
      const double flops = 2 * pairs * static_cast<double>(q.size(3) + value_width);
      total += block.causal ? flops / 2 : flops;
    }
  return total;
}

nn::AttentionBlock Call::seen(const Block& block, int64_t source) const {
  nn::AttentionBlock seen{.causal = block.causal};
  if (places.empty()) return seen;
  const auto of = [&](int64_t holder, const Range& range) {
    return places[static_cast<size_t>(holder)].narrow(0, range.first, range.count) - block.start;
  };
  seen.query_places = of(rank, block.queries);
  seen.key_places = of(source, block.keys);
  return seen;
}

ops::AttentionResult attend_forward(const Tensor& q, const Tensor& own, const Call& call) {
  OnlineAttention running(q);
  call.exchange->forward(own, [&](int64_t source, const Tensor& packed) {
    const Tensor k = keys_of(packed, q.size(3)), v = values_of(packed, q.size(3));
    for (const Block& block : call.blocks[static_cast<size_t>(source)]) {
      const ops::AttentionResult result = call.rule->forward(
          block.queries_of(q), block.keys_of(k), block.keys_of(v), call.seen(block, source));
      if (source == call.rank)
        running.set(block, result);
      else
        running.merge(block, result);
    }
  });
  return call.sinks.defined() ? nn::join_sinks(running.finish(), call.sinks) : running.finish();
}

struct Gradients {
  Tensor q;    // (B, H, n, hd)
  Tensor own;  // packed
};

/// In the dtype of sums.
Gradients attend_backward(const Tensor& grad_out, const Tensor& q, const Tensor& own,
                          const ops::AttentionResult& whole, const Call& call) {
  const Tensor dq =
      at::zeros({q.size(0), q.size(2), q.size(1), q.size(3)}, q.options().dtype(sum_type(q)))
          .transpose(1, 2);
  Tensor down = call.exchange->backward(own, [&](int64_t source, const Tensor& packed) {
    const int64_t width = q.size(3);
    const Tensor k = keys_of(packed, width), v = values_of(packed, width);
    const std::vector<Block>& blocks = call.blocks[static_cast<size_t>(source)];
    std::vector<ops::AttentionGradients> shares;
    for (const Block& block : blocks) {
      shares.push_back(call.rule->backward(
          block.queries_of(grad_out), block.queries_of(q), block.keys_of(k), block.keys_of(v),
          {block.queries_of(whole.out), block.queries_of(whole.logsumexp).contiguous()},
          call.seen(block, source)));
      block.queries_of(dq).add_(std::exchange(shares.back().q, Tensor()));
    }
    return [&blocks, width, shares = std::move(shares)](const Tensor& gradients) {
      for (size_t i = 0; i < blocks.size(); ++i) {
        blocks[i].keys_of(keys_of(gradients, width)).add_(shares[i].k);
        blocks[i].keys_of(values_of(gradients, width)).add_(shares[i].v);
      }
    };
  });
  return {dq, std::move(down)};
}

struct RingAttention : torch::autograd::Function<RingAttention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::optional<Tensor>& sinks, const CallPtr& call) {
    if (sinks) call->sinks = sinks->detach();
    const Tensor own = pack(k, v);
    const ops::AttentionResult result = keepable_pair<ops::AttentionResult>(
        {.kind = Operation::Kind::attention, .flops = call->flops(q, v.size(3))},
        [&] { return attend_forward(q, own, *call); });
    ctx->save_for_backward({q, own, result.out, result.logsumexp});
    ctx->saved_data["call"] = c10::IValue::make_capsule(call);
    return result.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    TITAN_CHECK(!at::GradMode::is_enabled(), config,
                "context-parallel attention cannot be differentiated twice: call backward without "
                "create_graph");
    const variable_list saved = ctx->get_saved_variables();
    const auto call = ctx->saved_data["call"].toCapsule();
    const auto& made = static_cast<const Call&>(*call);
    const ops::AttentionResult whole = {saved[2], saved[3]};
    const Gradients d = attend_backward(grads[0], saved[0], saved[1], whole, made);
    const at::ScalarType type = saved[0].scalar_type();
    const int64_t width = saved[0].size(3);
    const Tensor dsinks =
        made.sinks.defined() ? nn::sink_gradient(grads[0], whole, made.sinks) : Tensor();
    return {d.q.to(type), keys_of(d.own, width).to(type), values_of(d.own, width).to(type), dsinks,
            Tensor()};
  }
};

class Kernel final : public nn::AttentionKernel {
 public:
  Kernel(const SequenceCut& cut, int64_t rank, std::shared_ptr<const Exchange> exchange,
         std::shared_ptr<const nn::AttentionRule> rule)
      : cut_(cut), rank_(rank), exchange_(std::move(exchange)), rule_(std::move(rule)) {}

  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& batch) override {
    check(q, k, v, batch.documents);
    auto call = c10::make_intrusive<Call>();
    call->rank = rank_;
    call->exchange = exchange_;
    call->rule = rule_;
    if (rule_->needs_places()) {
      const Tensor row =
          at::arange(q.size(2) * cut_.num_ranks(), at::TensorOptions().dtype(at::kLong));
      for (int64_t source = 0; source < cut_.num_ranks(); ++source)
        call->places.push_back(cut_.share_of(source, row.unsqueeze(0)).squeeze(0));
    }
    for (int64_t source = 0; source < cut_.num_ranks(); ++source)
      call->blocks.push_back(
          visible_blocks(cut_, rank_, source, q.size(0), q.size(2), batch.documents, call->places));
    const Tensor sinks = rule_->sinks();
    return RingAttention::apply(
        q, k, v, sinks.defined() ? std::optional<Tensor>(sinks) : std::nullopt, call);
  }

 private:
  /// Checks that the operations below do not make.
  void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& documents) const {
    TITAN_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4 &&
                    k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(2) == k.size(2),
                config,
                "context-parallel attention: q must be (B, H, n, hd), k (B, KV, n, hd) and v "
                "(B, KV, n, hdv), got ",
                q.sizes(), ", ", k.sizes(), " and ", v.sizes());
    TITAN_CHECK(k.scalar_type() == v.scalar_type(), config,
                "context-parallel attention: k and v must have one dtype, got ", k.scalar_type(),
                " and ", v.scalar_type());
    TITAN_CHECK(q.size(2) % cut_.pieces_per_rank() == 0, config,
                "context-parallel attention: a share of ", q.size(2), " tokens is not ",
                cut_.pieces_per_rank(), " pieces: the batch was not cut by this plugin");
    if (!documents.defined()) return;
    const int64_t seq_len = q.size(2) * cut_.num_ranks();
    TITAN_CHECK(documents.dim() == 2 && documents.size(0) == q.size(0) &&
                    documents.size(1) == seq_len && documents.scalar_type() == at::kInt &&
                    documents.is_cpu(),
                config, "context-parallel attention: documents must be int32 (", q.size(0), ", ",
                seq_len, ") in host memory, got ", documents.sizes(), " ", documents.scalar_type(),
                " on ", documents.device());
  }

  SequenceCut cut_;
  int64_t rank_;
  std::shared_ptr<const Exchange> exchange_;  // shared with the kernels of other layers
  std::shared_ptr<const nn::AttentionRule> rule_;
};

}  // namespace

std::unique_ptr<nn::AttentionKernel> make_kernel(const SequenceCut& cut, int64_t rank,
                                                 std::shared_ptr<const Exchange> exchange,
                                                 std::shared_ptr<const nn::AttentionRule> rule) {
  return std::make_unique<Kernel>(cut, rank, std::move(exchange), std::move(rule));
}

}  // namespace titan::context_parallel
