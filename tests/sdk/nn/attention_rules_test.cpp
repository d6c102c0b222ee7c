// Windows, chunks and sinks, compared with a softmax over masked scores composed of ATen's
// operations under its autograd: whole rows, documents, generation. For blocks of keys see
// attention_blocks_test.cpp.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/nn/kv_cache.h>

#include "tests/sdk/nn/attention_rules_fixture.h"

namespace titan::attention_test {
namespace {

using namespace nn;
using ops::testing::expect_as_exact_as;
using ops::testing::expect_meta_like_real;
using ops::testing::Function;

Function ruled(const RulePtr& rule, const Tensor& documents = {}) {
  return
      [=](const Tensors& in) -> Tensors { return {attend(in[0], in[1], in[2], documents, rule)}; };
}
Function masked(const Sight& sight, const Tensor& documents = {}) {
  return [=](const Tensors& in) -> Tensors {
    return {masked_attention(in[0], in[1], in[2], sight, documents)};
  };
}

/// In double: outputs and gradients of q, k and v.
void expect_equal(const Function& found, const Function& expected, const Tensors& in) {
  const Tensors x = ops::testing::leaves(in, at::kDouble);
  const Tensors directions = ops::testing::directions_for(expected, x);
  const Tensors a = ops::testing::outputs_and_gradients(found, x, directions),
                b = ops::testing::outputs_and_gradients(expected, x, directions);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].sizes(), b[i].sizes()) << "result " << i;
    EXPECT_LT(max_error(a[i], b[i]), kTolerance) << "result " << i;
  }
}

TEST(AttentionRules, EqualAMaskedSoftmaxForwardAndBackward) {
  for (const int64_t length : {1, 2, 7, 20})
    for (const Ruled& r : rules_for(length)) {
      SCOPED_TRACE(r.name + " of " + std::to_string(length));
      expect_equal(ruled(r.rule), masked(r.sight), inputs({.length = length}));
    }
}

TEST(AttentionRules, TakeAnyNumberOfHeadsAndValuesOfAnotherWidth) {
  for (const Ruled& r : {window(6), chunk(6)})
    for (const Shape& s :
         {Shape{.heads = 4, .kv_heads = 4}, Shape{.heads = 6, .kv_heads = 1},
          Shape{.width = 12, .value_width = 8}, Shape{.width = 4, .value_width = 10}}) {
      SCOPED_TRACE(r.name);
      expect_equal(ruled(r.rule), masked(r.sight), inputs(s));
    }
}

TEST(AttentionRules, MultiplyScoresByTheirOwnScale) {
  const Tensors in = inputs({});
  const double root = std::sqrt(8.0);
  for (const auto& [scaled, sight] : {std::pair(windowed_attention(6, 0.9), sees_window(6)),
                                      std::pair(chunked_attention(6, 0.9), sees_chunk(6))}) {
    const auto longer = [&, by = sight](const Tensors& x) -> Tensors {
      return {masked_attention(x[0] * (0.9 * root), x[1], x[2], by)};
    };
    expect_equal(ruled(scaled), longer, in);
  }
}

/// Windows end at document boundaries, and chunks count from a document's first token.
TEST(AttentionRules, StayWithinDocuments) {
  Tensor documents = at::zeros({3, 20}, at::kInt);
  for (const int64_t start : {7, 8, 15}) documents[1].narrow(0, start, 20 - start).add_(1);
  for (int64_t start = 3; start < 20; start += 2) documents[2].narrow(0, start, 20 - start).add_(1);
  for (const Ruled& r : rules_for(20)) {
    SCOPED_TRACE(r.name);
    expect_equal(ruled(r.rule, documents), masked(r.sight, documents), inputs({.rows = 3}));
  }
}

TEST(AttentionRules, AreAsExactAsTheCompositionInNarrowTypes) {
  const Shape s{.length = 130, .width = 16, .value_width = 16};
  for (const Ruled& r : {window(1), window(50), window(64), chunk(50), chunk(130)}) {
    SCOPED_TRACE(r.name);
    expect_as_exact_as(masked(r.sight), ruled(r.rule), inputs(s), at::kFloat,
                       {.factor = 4, .roundings = 4, .absolute = 2e-6});
    expect_as_exact_as(masked(r.sight), ruled(r.rule), inputs(s), at::kBFloat16,
                       {.factor = 2, .roundings = 2, .absolute = 2e-6});
  }
}

TEST(AttentionRules, SayOnTheMetaDeviceWhatTheyGive) {
  for (const Ruled& r : {window(6), window(50), chunk(6), chunk(50)}) {
    SCOPED_TRACE(r.name);
    expect_meta_like_real(ruled(r.rule), inputs({.width = 12, .value_width = 8}));
  }
}

TEST(AttentionRules, RefuseSizesWithoutATokenAndSecondDerivatives) {
  EXPECT_THROW(windowed_attention(0), Error);
  EXPECT_THROW(chunked_attention(-1), Error);
  ops::testing::expect_graph_rules(ruled(windowed_attention(6)), inputs({}), 1);
}

// --- sinks ---------------------------------------------------------------------------------------

void expect_sinks(const RulePtr& rule, const Sight& sight, const Tensor& documents = {}) {
  const auto sinks = make_sinks(4);
  const Tensor theirs = sinks->value().detach().clone().requires_grad_();
  const Tensors in = inputs({.value_width = 6}), x = ops::testing::leaves(in, at::kDouble),
                y = ops::testing::leaves(in, at::kDouble);
  const Tensor found = attend(x[0], x[1], x[2], documents, with_sinks(rule, sinks));
  const Tensor expected = masked_attention(y[0], y[1], y[2], sight, documents, theirs);
  EXPECT_LT(max_error(found, expected), kTolerance);
  const Tensor direction = random(expected.sizes());
  found.backward(direction);
  expected.backward(direction);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_LT(max_error(x[i].grad(), y[i].grad()), kTolerance);
  EXPECT_LT(max_error(sinks->grad(), theirs.grad()), kTolerance);
  EXPECT_GT(theirs.grad().abs().min().item<double>(), 1e-3);
}

TEST(AttentionSinks, JoinTheSoftmaxOfEveryRule) {
  expect_sinks(plain_attention(), sees_all());
  for (const Ruled& r : {window(1), window(6), window(50), chunk(6)}) {
    SCOPED_TRACE(r.name);
    expect_sinks(r.rule, r.sight);
  }
}

TEST(AttentionSinks, JoinTheSoftmaxOfEachDocument) {
  Tensor documents = at::zeros({2, 20}, at::kInt);
  documents[1].narrow(0, 9, 11).add_(1);
  expect_sinks(window(6).rule, window(6).sight, documents);
}

/// Layers hold sinks in the compute dtype; sums use a wider one.
TEST(AttentionSinks, AreAddedInFp32ToNarrowScores) {
  const auto sinks = make_sinks(4, at::kBFloat16);
  const Tensors x = ops::testing::leaves(inputs({}), at::kBFloat16);
  const Tensor found = attend(x[0], x[1], x[2], Tensor(), with_sinks(window(6).rule, sinks));
  found.sum().backward();
  Tensors y;
  for (const Tensor& one : x) y.push_back(one.detach().to(at::kDouble).requires_grad_());
  const Tensor theirs = sinks->value().detach().to(at::kDouble).requires_grad_();
  const Tensor exact = masked_attention(y[0], y[1], y[2], window(6).sight, {}, theirs);
  exact.sum().backward();
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  EXPECT_LT(max_error(found, exact), 0x1p-7 * exact.abs().max().item<double>());
  EXPECT_EQ(sinks->grad().scalar_type(), at::kBFloat16);
  EXPECT_LT(max_error(sinks->grad(), theirs.grad()),
            0x1p-5 * theirs.grad().abs().max().item<double>());
}

// --- generation ----------------------------------------------------------------------------------

TEST(AttentionRules, GenerateWhatTheWholeSequenceGives) {
  const auto sinks = make_sinks(4);
  for (Ruled r : {window(1), window(4), window(9), chunk(1), chunk(4), chunk(20)})
    for (const bool has_sinks : {false, true}) {
      SCOPED_TRACE(r.name);
      const RulePtr rule = has_sinks ? with_sinks(r.rule, sinks) : r.rule;
      const Tensors in = inputs({.rows = 1, .length = 15, .value_width = 6});
      const Tensor whole = masked_attention(in[0], in[1], in[2], r.sight, {},
                                            has_sinks ? sinks->value().detach() : Tensor());
      KvCache cache(2, 15);
      const at::NoGradGuard no_grad;
      const int layer = 0;
      // a prompt in three parts, then token by token
      int64_t start = 0;
      for (const int64_t count : {3, 6, 1, 3, 1, 1}) {
        cache.begin({{.slot = 1, .start = start, .first = 0, .count = count}});
        const auto part = [&](const Tensor& x) { return x.narrow(2, start, count); };
        const Tensor found = cache.attend(&layer, part(in[0]), part(in[1]), part(in[2]), *rule);
        EXPECT_LT(max_error(found, part(whole)), kTolerance) << "tokens from " << start;
        start += count;
      }
    }
}

}  // namespace
}  // namespace titan::attention_test
