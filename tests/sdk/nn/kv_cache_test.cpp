// Attention over cached keys and values against attention over whole sequences.
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <titan/error.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/attention.h>
#include <titan/nn/kv_cache.h>

#include "experiments/own_attention/window.h"

namespace titan::nn {
namespace {

using at::Tensor;

constexpr int64_t kHeads = 4, kHeadDim = 8;

struct Qkv {
  Tensor q, k, v;
  Qkv at(int64_t first, int64_t count) const {
    return {q.narrow(2, first, count), k.narrow(2, first, count), v.narrow(2, first, count)};
  }
};

Qkv random_qkv(int64_t num_tokens, int64_t num_kv_heads) {
  return {at::randn({1, kHeads, num_tokens, kHeadDim}),
          at::randn({1, num_kv_heads, num_tokens, kHeadDim}),
          at::randn({1, num_kv_heads, num_tokens, kHeadDim})};
}

Qkv joined(const Qkv& a, const Qkv& b) {
  return {at::cat({a.q, b.q}, 2), at::cat({a.k, b.k}, 2), at::cat({a.v, b.v}, 2)};
}

/// Two sequences of 9 and 5 tokens: prompts in two parts of uneven length, then token by token.
void expect_same_as_whole(const std::shared_ptr<const AttentionRule>& rule, int64_t num_kv_heads) {
  const Qkv a = random_qkv(9, num_kv_heads), b = random_qkv(5, num_kv_heads);
  const Tensor whole_a = attend(a.q, a.k, a.v, Tensor(), rule);
  const Tensor whole_b = attend(b.q, b.k, b.v, Tensor(), rule);
  KvCache cache(3, 10);
  const int layer = 0;
  const auto step = [&](std::vector<CachedSpan> spans, const Qkv& x) {
    cache.begin(std::move(spans));
    return cache.attend(&layer, x.q, x.k, x.v, *rule);
  };
  const auto expect = [](const Tensor& got, const Tensor& wanted) {
    EXPECT_TRUE(at::allclose(got, wanted, 1e-5, 1e-6)) << (got - wanted).abs().max();
  };
  // a token of padding after them
  const Tensor first = step({{.slot = 2, .start = 0, .first = 0, .count = 3},
                             {.slot = 0, .start = 0, .first = 3, .count = 4}},
                            joined(joined(a.at(0, 3), b.at(0, 4)), random_qkv(1, num_kv_heads)));
  EXPECT_EQ(first.sizes(), at::IntArrayRef({1, kHeads, 8, kHeadDim}));
  expect(first.narrow(2, 0, 3), whole_a.narrow(2, 0, 3));
  expect(first.narrow(2, 3, 4), whole_b.narrow(2, 0, 4));
  expect(first.narrow(2, 7, 1), at::zeros_like(first.narrow(2, 7, 1)));
  const Tensor second = step({{.slot = 2, .start = 3, .first = 0, .count = 4},
                              {.slot = 0, .start = 4, .first = 4, .count = 1}},
                             joined(a.at(3, 4), b.at(4, 1)));
  expect(second.narrow(2, 0, 4), whole_a.narrow(2, 3, 4));
  expect(second.narrow(2, 4, 1), whole_b.narrow(2, 4, 1));
  cache.copy(2, 1, 7);
  for (int64_t i = 7; i < 9; ++i) {
    expect(step({{.slot = 1, .start = i, .first = 0, .count = 1}}, a.at(i, 1)),
           whole_a.narrow(2, i, 1));
    expect(step({{.slot = 2, .start = i, .first = 0, .count = 1}}, a.at(i, 1)),
           whole_a.narrow(2, i, 1));
  }
}

TEST(KvCache, EqualsAttentionOverWholeSequences) {
  expect_same_as_whole(plain_attention(), kHeads);
}

TEST(KvCache, GroupsQueries) {
  expect_same_as_whole(plain_attention(), 2);
}

TEST(KvCache, ScalesScores) {
  expect_same_as_whole(plain_attention(0.7), 1);
}

TEST(KvCache, FollowsARuleThatNeedsPlaces) {
  expect_same_as_whole(std::make_shared<own_attention::Window>(4), kHeads);
}

TEST(KvCache, RefusesTokensThatDoNotFit) {
  KvCache cache(2, 4);
  EXPECT_THROW(cache.begin({{.slot = 2, .start = 0, .first = 0, .count = 1}}), Error);
  EXPECT_THROW(cache.begin({{.slot = 0, .start = 3, .first = 0, .count = 2}}), Error);
  cache.begin({{.slot = 1, .start = 3, .first = 0, .count = 1}});
}

/// With a kernel that a plugin provides.
class Nothing final : public AttentionKernel {
 public:
  Tensor attend(const Tensor& q, const Tensor&, const Tensor&, const Batch&) override { return q; }
};

TEST(KvCache, IsRefusedWhereAnotherComputesAttention) {
  AttentionCore core;
  core.set_kernel("acme", std::make_unique<Nothing>(), "a layer");
  Batch batch;
  batch.kv_cache = std::make_shared<KvCache>(1, 4);
  const Qkv x = random_qkv(1, kHeads);
  try {
    core.attend(x.q, x.k, x.v, batch);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    EXPECT_NE(e.message().find("'acme'"), std::string::npos) << e.message();
  }
}

/// On a CPU, bf16 attention computes in fp32 and rounds once.
TEST(KvCache, RoundsNarrowTypesOnce) {
  Qkv x = random_qkv(40, 2);
  for (Tensor* part : {&x.q, &x.k, &x.v}) *part = part->to(at::kBFloat16);
  const auto rule = plain_attention();
  KvCache cache(1, 40);
  const int layer = 0;
  const auto step = [&](int64_t first, int64_t count) {
    cache.begin({{.slot = 0, .start = first, .first = 0, .count = count}});
    const Qkv part = x.at(first, count);
    return cache.attend(&layer, part.q, part.k, part.v, *rule);
  };
  static_cast<void>(step(0, 39));
  const Tensor last = step(39, 1);
  EXPECT_EQ(last.scalar_type(), at::kBFloat16);
  const Tensor exact =
      attend(x.q.to(at::kDouble), x.k.to(at::kDouble), x.v.to(at::kDouble), Tensor(), rule)
          .narrow(2, 39, 1);
  const Tensor rounded = exact.to(at::kBFloat16);
  // a value halfway between two neighbours may round to either
  EXPECT_LE(last.ne(rounded).sum().item<int64_t>(), 1);
}

}  // namespace
}  // namespace titan::nn
