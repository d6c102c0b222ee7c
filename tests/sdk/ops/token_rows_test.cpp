// Rows of tokens to experts and back, against ATen's own gathers and sums under its autograd.
#include <titan/ops/token_rows.h>

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::ops::token_rows_test {
namespace {

using at::Tensor;
using titan::testing::error_of;
using titan::testing::holds;

constexpr int64_t kTokens = 7, kSlots = 3, kDim = 5;

Tensor random(at::IntArrayRef shape, at::ScalarType type) {
  return at::rand(shape, at::kDouble).sub_(0.5).to(type);
}

/// The gradient of `input` for a random gradient of `y`.
Tensor gradient(const Tensor& y, const Tensor& of_y, Tensor& input) {
  input.mutable_grad() = Tensor();
  y.backward(of_y);
  return input.grad();
}

TEST(TokenRows, ByNumberAreThoseOfATenAndOnTheMetaDeviceOfTheirShapes) {
  const Tensor numbers = at::randperm(kTokens, at::kLong).narrow(0, 1, kTokens - 2);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{kTokens, kDim}, std::vector<int64_t>{kTokens}}) {
    Tensor x = random(shape, at::kFloat).set_requires_grad(true);
    const Tensor ours = rows_at(x, numbers), expected = at::index(x, {numbers});
    EXPECT_TRUE(at::equal(ours, expected));
    const Tensor of_y = random(ours.sizes(), at::kFloat);
    const Tensor found = gradient(ours, of_y, x).clone();
    EXPECT_TRUE(at::equal(found, gradient(expected, of_y, x)));
    const Tensor planned = rows_at(x.detach().to(at::kMeta), numbers.to(at::kMeta));
    EXPECT_EQ(planned.sizes(), expected.sizes());
    EXPECT_EQ(planned.dtype(), expected.dtype());
  }
}

TEST(TokenRows, OfSlotsAreThoseOfTheirTokens) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Tensor x = random({kTokens, kDim}, type).set_requires_grad(true);
    const Tensor order = at::randperm(kTokens * kSlots, at::kLong);
    const Tensor ours = rows_of_slots(x, order);
    const Tensor expected = x.repeat_interleave(kSlots, 0).index_select(0, order);
    ASSERT_TRUE(at::equal(ours, expected));
    const Tensor of_y = random(ours.sizes(), type);
    const Tensor found = gradient(ours, of_y, x).clone();
    EXPECT_TRUE(at::allclose(found, gradient(expected, of_y, x), 1e-2, 1e-2)) << type;
    if (type == at::kDouble) {
      EXPECT_TRUE(at::allclose(found, x.grad(), 1e-14, 1e-14));
    }
  }
}

TEST(TokenRows, ComeBackToTheirSlots) {
  Tensor rows = random({kTokens * kSlots, kDim}, at::kFloat).set_requires_grad(true);
  const Tensor order = at::randperm(kTokens * kSlots, at::kLong);
  const Tensor back = in_order_of_slots(rows, order);
  EXPECT_TRUE(at::equal(back.index_select(0, order), rows));
  const Tensor of_y = random(back.sizes(), at::kFloat);
  EXPECT_TRUE(at::equal(gradient(back, of_y, rows), of_y.index_select(0, order)));
}

TEST(TokenRows, AreAddedByTheirWeights) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::ScalarType precise = type == at::kDouble ? at::kDouble : at::kFloat;
    Tensor rows = random({kTokens * kSlots, kDim}, type).set_requires_grad(true);
    Tensor weights = random({kTokens, kSlots}, precise).set_requires_grad(true);
    const Tensor sum = sum_of_slots(rows, weights);
    const Tensor expected =
        (rows.to(precise).view({kTokens, kSlots, kDim}) * weights.unsqueeze(2)).sum(1).to(type);
    ASSERT_EQ(sum.scalar_type(), type);
    const double limit = type == at::kBFloat16 ? 1e-2 : type == at::kFloat ? 1e-6 : 1e-14;
    EXPECT_TRUE(at::allclose(sum, expected, limit, limit));
    const Tensor of_y = random(sum.sizes(), type);
    weights.mutable_grad() = Tensor();
    const Tensor of_rows = gradient(sum, of_y, rows).clone(), of_weights = weights.grad().clone();
    weights.mutable_grad() = Tensor();
    EXPECT_TRUE(at::allclose(of_rows, gradient(expected, of_y, rows), limit, limit));
    EXPECT_TRUE(at::allclose(of_weights, weights.grad(), limit, limit)) << type;
  }
}

/// Each token has its own sum: other tokens of the batch change no bit.
TEST(TokenRows, OfATokenAreAddedAlikeInEveryBatch) {
  const Tensor rows = random({kTokens * kSlots, kDim}, at::kFloat);
  const Tensor weights = random({kTokens, kSlots}, at::kFloat);
  const Tensor sum = sum_of_slots(rows, weights);
  for (int64_t token = 0; token < kTokens; ++token)
    EXPECT_TRUE(
        at::equal(sum_of_slots(rows.narrow(0, token * kSlots, kSlots), weights.narrow(0, token, 1)),
                  sum.narrow(0, token, 1)));
}

TEST(TokenRows, AreNoneForNoTokens) {
  const Tensor x = at::empty({0, kDim}).set_requires_grad(true), order = at::empty({0}, at::kLong);
  const Tensor rows = rows_of_slots(x, order);
  EXPECT_EQ(rows.sizes(), (at::IntArrayRef{0, kDim}));
  const Tensor back = in_order_of_slots(rows, order);
  const Tensor sum = sum_of_slots(back, at::empty({0, kSlots}));
  EXPECT_EQ(sum.sizes(), (at::IntArrayRef{0, kDim}));
  sum.sum().backward();
  EXPECT_EQ(x.grad().sizes(), (at::IntArrayRef{0, kDim}));
}

TEST(TokenRows, AreRefusedWhereTheyDoNotFit) {
  const Tensor x = at::rand({kTokens, kDim});
  EXPECT_TRUE(
      holds(error_of([&] { rows_of_slots(x, at::arange(kTokens + 1)); }).what(), "do not fit"));
  EXPECT_TRUE(
      holds(error_of([&] { in_order_of_slots(x, at::arange(kTokens + 1)); }).what(), "do not fit"));
  EXPECT_TRUE(holds(error_of([&] {
                      sum_of_slots(x, at::rand({kTokens, 2}));
                    }).what(),
                    "do not fit"));
}

}  // namespace
}  // namespace titan::ops::token_rows_test
