// Attention rules over rows that are combined from blocks of keys by logsumexp, as in context
// parallelism. Compared with a softmax over masked scores of the whole row.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "tests/sdk/nn/attention_rules_fixture.h"

namespace titan::attention_test {
namespace {

using namespace nn;
using ops::AttentionGradients;
using ops::AttentionResult;

Tensor places(const std::vector<std::pair<int64_t, int64_t>>& runs) {
  std::vector<Tensor> parts;
  for (const auto& [first, end] : runs)
    parts.push_back(at::arange(first, end, at::TensorOptions().dtype(at::kLong)));
  return at::cat(parts);
}

/// One block of attention: the positions of its queries and keys.
struct Meeting {
  Tensor queries, keys;
  bool causal = false;
};

/// For each rank, the blocks that it computes of a row of `length` tokens, its own block first.
using Shares = std::vector<std::vector<Meeting>>;

/// Two ranks, each with one piece from either end. A rank's queries are two runs of tokens; the
/// keys that it sees of the other rank are one run or two.
Shares zigzag(int64_t length) {
  const int64_t p = length / 4;
  const Tensor outer = places({{0, p}, {3 * p, length}}), inner = places({{p, 3 * p}});
  return {{{outer, outer, true}, {places({{3 * p, length}}), inner}},
          {{inner, inner, true}, {inner, places({{0, p}})}}};
}

/// Three ranks with two pieces each, where queries of one run see keys of two runs.
Shares wide_zigzag(int64_t length) {
  const int64_t p = length / 6;
  const auto pieces = [&](int64_t a, int64_t b) {
    return places({{a * p, (a + 1) * p}, {b * p, b == 5 ? length : (b + 1) * p}});
  };
  const auto piece = [&](int64_t a) { return places({{a * p, a == 5 ? length : (a + 1) * p}}); };
  const Tensor first = pieces(0, 5), second = pieces(1, 4), third = pieces(2, 3);
  return {{{first, first, true}, {piece(5), second}, {piece(5), third}},
          {{second, second, true}, {second, piece(0)}, {piece(4), third}},
          {{third, third, true}, {third, piece(0)}, {third, piece(1)}}};
}

struct Whole {
  AttentionResult result;
  AttentionGradients gradients;
};

Tensor at_places(const Tensor& x, const Tensor& tokens) {
  return x.index_select(2, tokens).transpose(1, 2).contiguous().transpose(1, 2);
}

/// Combines outputs of the blocks by logsumexp, and adds up the gradients of each block.
Whole run_blocks(const AttentionRule& rule, const Tensors& in, const Shares& shares,
                 const Tensor& direction, const Tensor& sinks = {}) {
  const at::NoGradGuard no_grad;
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  Whole whole{{at::zeros_like(direction), at::full(q.sizes().slice(0, 3), -INFINITY, q.options())},
              {at::zeros_like(q), at::zeros_like(k), at::zeros_like(v)}};
  const auto each_block = [&](const auto& body) {
    for (const std::vector<Meeting>& share : shares)
      for (const Meeting& m : share)
        body(m,
             AttentionBlock{.causal = m.causal, .query_places = m.queries, .key_places = m.keys});
  };
  each_block([&](const Meeting& m, const AttentionBlock& block) {
    const AttentionResult seen =
        rule.forward(at_places(q, m.queries), at_places(k, m.keys), at_places(v, m.keys), block);
    EXPECT_TRUE(seen.out.isfinite().all().item<bool>());
    const AttentionResult before = {at_places(whole.result.out, m.queries),
                                    whole.result.logsumexp.index_select(2, m.queries)};
    ops::merge_attention(before, seen);
    whole.result.out.index_copy_(2, m.queries, before.out);
    whole.result.logsumexp.index_copy_(2, m.queries, before.logsumexp);
  });
  if (sinks.defined()) whole.result = join_sinks(whole.result, sinks);
  each_block([&](const Meeting& m, const AttentionBlock& block) {
    const AttentionGradients d = rule.backward(
        at_places(direction, m.queries), at_places(q, m.queries), at_places(k, m.keys),
        at_places(v, m.keys),
        {at_places(whole.result.out, m.queries), whole.result.logsumexp.index_select(2, m.queries)},
        block);
    whole.gradients.q.index_add_(2, m.queries, d.q);
    whole.gradients.k.index_add_(2, m.keys, d.k);
    whole.gradients.v.index_add_(2, m.keys, d.v);
  });
  return whole;
}

struct Row {
  Shape shape;
  Shares shares;
  bool has_sinks = false;
};

void expect_blocks(const Ruled& r, const Row& row) {
  SCOPED_TRACE(r.name + " of " + std::to_string(row.shape.length));
  const auto sinks = make_sinks(row.shape.heads);
  const Tensors x = ops::testing::leaves(inputs(row.shape), at::kDouble);
  const Tensor theirs = sinks->value().detach().clone().requires_grad_();
  const Tensor expected =
      masked_attention(x[0], x[1], x[2], r.sight, {}, row.has_sinks ? theirs : Tensor());
  const Tensor direction = random(expected.sizes());
  expected.backward(direction);
  const RulePtr rule = row.has_sinks ? with_sinks(r.rule, sinks) : r.rule;
  Tensors plain;
  for (const Tensor& one : x) plain.push_back(one.detach());
  const Whole whole = run_blocks(*rule, plain, row.shares, direction, rule->sinks());
  EXPECT_LT(max_error(whole.result.out, expected), kTolerance);
  EXPECT_LT(max_error(whole.gradients.q, x[0].grad()), kTolerance);
  EXPECT_LT(max_error(whole.gradients.k, x[1].grad()), kTolerance);
  EXPECT_LT(max_error(whole.gradients.v, x[2].grad()), kTolerance);
  if (!row.has_sinks) return;
  const at::NoGradGuard no_grad;
  EXPECT_LT(max_error(sink_gradient(direction, whole.result, sinks->value()), theirs.grad()),
            kTolerance);
}

TEST(AttentionBlocks, AreTheWholeRowWhoeverHoldsItsTokens) {
  const auto shape = [](int64_t length) { return Shape{.length = length, .value_width = 6}; };
  for (const Row& row : {Row{shape(24), zigzag(24)}, Row{shape(30), zigzag(30), true},
                         Row{shape(30), wide_zigzag(30)}}) {
    for (const Ruled& r : rules_for(row.shape.length)) expect_blocks(r, row);
    expect_blocks({"all", plain_attention(), sees_all()}, row);
  }
}

/// More queries see keys of another block than fit into one matrix of scores.
TEST(AttentionBlocks, OfManyTokensAreTheWholeRow) {
  const int64_t half = 300, length = 2 * half;
  const Tensor first = places({{0, half}}), second = places({{half, length}});
  const Row row = {{.rows = 1, .heads = 2, .kv_heads = 1, .length = length},
                   {{{first, first, true}}, {{second, second, true}, {second, first}}}};
  for (const Ruled& r : {window(290), window(400), chunk(200)}) expect_blocks(r, row);
}

/// Blocks of simulated ranks, including windows that end within the block.
TEST(AttentionBlocks, SayOnTheMetaDeviceWhatTheyGive) {
  const Tensors in = inputs({.length = 12, .value_width = 6});
  const AttentionBlock block{
      .causal = false, .query_places = places({{12, 24}}), .key_places = places({{0, 12}})};
  const Tensor direction = random({2, 4, 12, 6});
  for (const Ruled& r : {window(5), window(15), window(40), chunk(9), chunk(40)}) {
    SCOPED_TRACE(r.name);
    const auto run = [&](c10::Device device) {
      const auto on = [&](const Tensor& x) { return x.to(device); };
      const AttentionResult seen = r.rule->forward(on(in[0]), on(in[1]), on(in[2]), block);
      const AttentionGradients d =
          r.rule->backward(on(direction), on(in[0]), on(in[1]), on(in[2]), seen, block);
      return Tensors{seen.out, seen.logsumexp, d.q, d.k, d.v};
    };
    const Tensors real = run(c10::kCPU), simulated = run(c10::kMeta);
    for (size_t i = 0; i < real.size(); ++i) {
      EXPECT_TRUE(simulated[i].is_meta()) << i;
      EXPECT_EQ(simulated[i].sizes(), real[i].sizes()) << i;
      const bool is_logsumexp = i == 1;  // in the layout of the device's kernel
      if (!is_logsumexp) {
        EXPECT_EQ(simulated[i].strides(), real[i].strides()) << i;
      }
      EXPECT_EQ(simulated[i].scalar_type(), real[i].scalar_type()) << i;
    }
  }
}

TEST(AttentionBlocks, AQueryThatSeesNothingOfABlockHasNoShareOfIt) {
  const Tensors in = inputs({.length = 4});
  const AttentionBlock block{
      .causal = false, .query_places = places({{10, 14}}), .key_places = places({{0, 4}})};
  for (const Ruled& r : {window(3), window(8), chunk(10), chunk(2)}) {
    SCOPED_TRACE(r.name);
    const AttentionResult seen = r.rule->forward(in[0], in[1], in[2], block);
    const Tensor sees = r.sight(block.query_places.unsqueeze(1), block.key_places).any(-1);
    EXPECT_TRUE(seen.out.isfinite().all().item<bool>());
    EXPECT_TRUE(seen.logsumexp.isfinite().eq(sees).all().item<bool>());
    EXPECT_TRUE(seen.logsumexp.isnan().logical_not().all().item<bool>());
  }
}

}  // namespace
}  // namespace titan::attention_test
