// Parameters: slices of the global tensor, their initial values, gradient functions, and values
// separate from shards.
#include <titan/nn/parameter.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/nn/fake_group.h"
#include "tests/sdk/nn/slices.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::fake_group;
using titan::testing::holds;
using titan::testing::same_bits;
using titan::testing::slice_of;

constexpr uint64_t kSeed = 17;

at::Tensor whole(const std::vector<int64_t>& shape, const Init& init) {
  Parameter p(shape, init);
  p.set_name("w");
  p.materialize(c10::kCPU, at::kFloat, kSeed);
  return p.value().detach();
}

TEST(Parameter, ShardsAreBitwiseSlicesOfTheWhole) {
  const Init inits[] = {Init::normal(0, 1), Init::truncated_normal(0, 0.1, -0.3, 0.3),
                        Init::constant(1)};
  for (const Init& init : inits)
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{7, 5}, {4, 10}, {2, 3}, {13}, {3, 4, 5}}) {
      const at::Tensor unsharded = whole(shape, init);
      for (int size : {1, 2, 3})
        for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
          int64_t covered = 0;
          for (int rank = 0; rank < size; ++rank) {
            Parameter p(shape, init);
            p.shard_over(dim, fake_group(rank, size));
            p.set_name("w");
            p.materialize(c10::kCPU, at::kFloat, kSeed);
            EXPECT_EQ(p.slice().offsets[dim], covered);
            covered += p.slice().sizes[dim];
            EXPECT_TRUE(same_bits(p.shard(), slice_of(unsharded, p.slice())));
            EXPECT_EQ(p.global_shape(), shape);
          }
          EXPECT_EQ(covered, shape[dim]);
        }
    }
}

TEST(Parameter, ShardsOfShardsAreBitwiseSlicesOfTheWhole) {
  const std::vector<int64_t> shape = {7, 11};
  const at::Tensor unsharded = whole(shape, Init::normal(0, 1));
  at::Tensor count = at::zeros(shape);
  for (const auto& [tensor_dim, data_dim] : {std::pair{0, 0}, std::pair{1, 0}})
    for (int tensor_rank = 0; tensor_rank < 2; ++tensor_rank)
      for (int data_rank = 0; data_rank < 3; ++data_rank) {
        Parameter p(shape, Init::normal(0, 1));
        p.shard_over(tensor_dim, fake_group(tensor_rank, 2));
        p.shard_over(data_dim, fake_group(data_rank, 3));
        p.set_name("w");
        p.materialize(c10::kCPU, at::kFloat, kSeed);
        EXPECT_TRUE(same_bits(p.shard(), slice_of(unsharded, p.slice())));
        slice_of(count, p.slice()).add_(1);
      }
  EXPECT_TRUE(at::equal(count, at::full(shape, 2.0)));  // each element once per layout
}

TEST(Parameter, LastChunksAreShorterOrEmpty) {
  const auto rows = [](int64_t size, int ranks) {
    std::vector<int64_t> sizes;
    for (int rank = 0; rank < ranks; ++rank) {
      Parameter p({size, 2}, Init::normal(0, 1));
      p.shard_over(0, fake_group(rank, ranks));
      sizes.push_back(p.slice().sizes[0]);
    }
    return sizes;
  };
  EXPECT_EQ(rows(5, 3), (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(rows(4, 3), (std::vector<int64_t>{2, 2, 0}));
  EXPECT_EQ(rows(1, 3), (std::vector<int64_t>{1, 0, 0}));
}

TEST(Parameter, IsOnMetaUntilItGetsMemoryOnce) {
  Parameter p({4, 3}, Init::normal(0, 1));
  EXPECT_TRUE(p.value().is_meta() && p.value().requires_grad());
  EXPECT_TRUE(holds(error_of([&] { p.materialize(c10::kCPU, at::kFloat, 1); }).what(),
                    "before it has a name"));
  p.set_name("layers.0.w");
  p.materialize(c10::kCPU, at::kFloat, 1);
  EXPECT_TRUE(p.is_materialized() && p.value().is_leaf() && p.value().requires_grad());
  EXPECT_TRUE(
      holds(error_of([&] { p.materialize(c10::kCPU, at::kFloat, 1); }).what(), "layers.0.w"));
  const Error late = error_of([&] { p.shard_over(0, fake_group(0, 2)); });
  EXPECT_EQ(late.kind(), ErrorKind::internal);
  EXPECT_TRUE(holds(late.what(), "layers.0.w"));
}

TEST(Parameter, RunsGradientFunctionsInOrderOnceTheGradientIsComplete) {
  Parameter p({3}, Init::constant(2));
  p.set_name("w");
  std::vector<std::string> events;
  const auto note = [&](const std::string& name) {
    return [&events, name](Parameter& q) {
      events.push_back(name + std::to_string(q.grad().sum().item<int>()));
    };
  };
  p.on_gradient(note("first "));
  p.materialize(c10::kCPU, at::kFloat, 1);
  p.on_gradient(note("second "));
  (p.value() * 5 + p.value() * 2).sum().backward();  // two uses, one gradient
  EXPECT_EQ(events, (std::vector<std::string>{"first 21", "second 21"}));
  p.value().sum().backward();  // accumulates
  EXPECT_EQ(events.size(), 4u);
  EXPECT_EQ(events[3], "second 24");
  p.clear_gradient();
  EXPECT_FALSE(p.grad().defined());
}

/// In the order of a backward: hooks of the value, then the sum, then the gradient functions.
TEST(Parameter, AddsAGradientThroughTheHooksOfItsValue) {
  Parameter p({2}, Init::constant(1));
  p.set_name("w");
  p.materialize(c10::kCPU, at::kFloat, kSeed);
  p.value().register_hook([](const at::Tensor& gradient) { return gradient * 3; });
  std::vector<at::Tensor> seen;
  p.on_gradient([&](Parameter& parameter) { seen.push_back(parameter.grad().clone()); });
  const at::Tensor once = at::full({2}, 3), twice = at::full({2}, 6);
  p.value().sum().backward();
  p.add_gradient(at::ones({2}));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(at::equal(seen[0], once));
  EXPECT_TRUE(at::equal(seen[1], twice));
}

TEST(Parameter, KeepsItsShardWhenTheValueIsSeparated) {
  Parameter p({6}, Init::normal(0, 1));
  p.set_name("w");
  p.shard_over(0, fake_group(1, 2));
  int calls = 0;
  p.on_gradient([&](Parameter& q) {
    ++calls;
    q.shard().mutable_grad() =
        q.value().grad().narrow(0, 3, 3).clone();  // like a data-parallel transform
    q.value().mutable_grad() = at::Tensor();
  });
  p.separate_value(at::ones({6}).set_requires_grad(true));
  p.materialize(c10::kCPU, at::kFloat, kSeed);
  EXPECT_TRUE(same_bits(p.shard(), whole({6}, Init::normal(0, 1)).narrow(0, 3, 3)));
  EXPECT_TRUE(at::equal(p.value().detach(), at::ones({6})));

  (p.value() * at::arange(6)).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(at::equal(p.grad(), at::arange(3, 6, at::kFloat)));
  p.value().mutable_grad() = at::ones({6});
  p.clear_gradient();
  EXPECT_FALSE(p.grad().defined() || p.value().grad().defined());
  EXPECT_EQ(error_of([&] { p.separate_value(at::ones({6})); }).kind(), ErrorKind::internal);
}

TEST(Parameter, MovesItsGradientFunctionsToAValueSeparatedLater) {
  Parameter p({2}, Init::constant(1));
  p.set_name("w");
  int calls = 0;
  p.on_gradient([&](Parameter&) { ++calls; });
  p.materialize(c10::kCPU, at::kFloat, 1);
  p.separate_value(at::ones({2}).set_requires_grad(true));
  p.value().sum().backward();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace titan::nn
