#include <titan/ops/embedding.h>

#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::embedding_test {
namespace {

Function fused(const Tensor& tokens) {
  return [=](const Tensors& in) -> Tensors {
    return {ops::embedding(in[0], tokens.to(in[0].device()))};
  };
}
Function composed(const Tensor& tokens) {
  return [=](const Tensors& in) -> Tensors { return {at::embedding(in[0], tokens)}; };
}

TEST(Embedding, IsAsExactAsAten) {
  const Tensor tokens = random_ids(50, {3, 40});
  for (const Tensor& t : {tokens, tokens.t(), tokens.flatten(), tokens.narrow(0, 0, 0)}) {
    expect_as_exact_as(composed(t), fused(t), {random({50, 24})});
  }
}

TEST(Embedding, DifferentiatesInDouble) {
  expect_gradients_by_differences(fused(random_ids(4, {2, 5})), {random({4, 3})});
}

TEST(Embedding, SumsNarrowGradientsInFp32) {
  constexpr int64_t kTokens = 4000;  // sums in fp16 would stop growing at 64
  const Tensor tokens = at::full({kTokens}, 2, at::kLong);
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const Tensor w = random({4, 8}, type).requires_grad_();
    const Tensor share = at::full({kTokens, 8}, 1.0 / 32, at::TensorOptions().dtype(type));
    const Tensor g = torch::autograd::grad({ops::embedding(w, tokens)}, {w}, {share})[0];
    EXPECT_EQ(g.scalar_type(), type);
    EXPECT_TRUE(g[2].eq(125).all().item<bool>());
    EXPECT_EQ(g.sum().item<double>(), 1000);
  }
}

TEST(Embedding, DoesNotDependOnTheNumberOfThreads) {
  const Tensor tokens = random_ids(30, {2000});
  expect_same_for_any_number_of_threads(fused(tokens), {random({1000, 64})});
}

TEST(Embedding, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused(random_ids(50, {3, 40})), {random({50, 24})});
}

TEST(Embedding, RecordsAGraphOnlyWhenNeeded) {
  const Tensor tokens = random_ids(5, {7}), w = random({5, 4}).requires_grad_();
  EXPECT_TRUE(ops::embedding(w, tokens).requires_grad());
  EXPECT_FALSE(ops::embedding(w.detach(), tokens).requires_grad());
  const Tensor y = ops::embedding(w, tokens);
  tokens.add_(0);
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {w}), c10::Error);
}

TEST(Embedding, NamesATokenOutsideOfTheTable) {
  for (const int64_t token : {5, -1}) {
    try {
      ops::embedding(random({5, 4}), at::full({3}, token, at::kLong));
      FAIL() << "token " << token << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_NE(error.message().find("token " + std::to_string(token)), std::string::npos);
      EXPECT_NE(error.message().find("table of 5 rows"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace titan::ops::testing::embedding_test
