#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/error.h>
#include <titan/nn/attention_rules.h>
#include <titan/ops/document_attention.h>
#include <titan/recompute.h>

namespace titan::nn {
namespace {

using RulePtr = std::shared_ptr<const AttentionRule>;
using torch::autograd::variable_list;

class PlainAttention final : public AttentionRule {
 public:
  explicit PlainAttention(std::optional<double> scale) : scale_(scale) {}
  ops::AttentionResult forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const AttentionBlock& block) const override {
    return ops::attention_forward(q, k, v, {.causal = block.causal, .scale = scale_});
  }
  ops::AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q,
                                   const at::Tensor& k, const at::Tensor& v,
                                   const ops::AttentionResult& whole,
                                   const AttentionBlock& block) const override {
    return ops::attention_backward(grad_out, q, k, v, whole,
                                   {.causal = block.causal, .scale = scale_});
  }

 private:
  std::optional<double> scale_;
};

/// Keeps a rule alive in a graph.
struct HeldRule : torch::CustomClassHolder {
  explicit HeldRule(RulePtr rule) : rule(std::move(rule)) {}
  RulePtr rule;
};

/// A block of whole rows, or whole documents, that attend within themselves.
AttentionBlock own_block(const AttentionRule& rule, const at::Tensor& q) {
  AttentionBlock block;
  if (rule.needs_places())
    block.query_places = block.key_places =
        at::arange(q.size(2), at::TensorOptions().dtype(at::kLong));
  return block;
}

struct RuledAttention : torch::autograd::Function<RuledAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& q,
                            const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& given_sinks, const RulePtr& rule) {
    const double pairs =
        static_cast<double>(q.size(0) * q.size(1) * q.size(2)) * static_cast<double>(k.size(2));
    const at::Tensor sinks = given_sinks.value_or(at::Tensor());
    const ops::AttentionResult result = keepable_pair<ops::AttentionResult>(
        {.kind = Operation::Kind::attention,
         .flops = pairs * static_cast<double>(q.size(3) + v.size(3))},
        [&] {
          const ops::AttentionResult seen = rule->forward(q, k, v, own_block(*rule, q));
          return sinks.defined() ? join_sinks(seen, sinks) : seen;
        });
    ctx->save_for_backward({q, k, v, result.out, result.logsumexp, sinks});
    ctx->saved_data["rule"] = c10::IValue::make_capsule(c10::make_intrusive<HeldRule>(rule));
    return result.out;
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, const variable_list& grads) {
    TITAN_CHECK(!at::GradMode::is_enabled(), config,
                "attention by a rule cannot be differentiated twice: call backward without "
                "create_graph");
    const variable_list saved = ctx->get_saved_variables();
    const auto held = ctx->saved_data["rule"].toCapsule();
    const AttentionRule& rule = *static_cast<const HeldRule&>(*held).rule;
    const ops::AttentionResult whole = {saved[3], saved[4]};
    const ops::AttentionGradients d =
        rule.backward(grads[0], saved[0], saved[1], saved[2], whole, own_block(rule, saved[0]));
    const at::Tensor dsinks =
        saved[5].defined() ? sink_gradient(grads[0], whole, saved[5]) : at::Tensor();
    return {d.q, d.k, d.v, dsinks, at::Tensor()};
  }
};

}  // namespace

AttentionRule::~AttentionRule() = default;
at::Tensor AttentionRule::sinks() const {
  return {};
}

std::shared_ptr<const AttentionRule> plain_attention(std::optional<double> scale) {
  return std::make_shared<PlainAttention>(scale);
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& documents, const RulePtr& rule) {
  const at::Tensor own_sinks = rule->sinks();
  const auto sinks =
      own_sinks.defined() ? std::optional<at::Tensor>(own_sinks) : std::optional<at::Tensor>();
  if (!documents.defined()) return RuledAttention::apply(q, k, v, sinks, rule);
  const int64_t rows = q.size(0), seq_len = q.size(2);
  TITAN_CHECK(k.size(2) == seq_len, config,
              "attention by a rule: documents need as many keys as queries, ", seq_len, ", got ",
              k.size(2));
  std::vector<at::Tensor> outs;  // (1, n, H, hd), in the order of rows and documents
  int64_t token = 0;             // of all rows
  for (const int64_t length : ops::document_lengths(documents, rows, seq_len)) {
    const int64_t row = token / seq_len, first = token % seq_len;
    const auto piece = [&](const at::Tensor& x) {
      return x.narrow(0, row, 1).narrow(2, first, length);
    };
    outs.push_back(
        RuledAttention::apply(piece(q), piece(k), piece(v), sinks, rule).transpose(1, 2));
    token += length;
  }
  return at::cat(outs, 1).view({rows, seq_len, q.size(1), v.size(3)}).transpose(1, 2);
}

}  // namespace titan::nn
