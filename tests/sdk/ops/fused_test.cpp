// The fused operations are bitwise equal to the operations that they replace. Other tests compare
// those with ATen's compositions; this one also compares the fused operations directly.
#include <titan/ops/fused.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::fused_test {
namespace {

constexpr double kEps = 1e-5;
constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16, at::kDouble};

Tensors fused(const Tensors& in) {
  const AddedNorm both = add_rms_norm(in[0], in[1], in[2], kEps);
  return {both.sum, both.normalized};
}
Tensors one_after_the_other(const Tensors& in) {
  const Tensor sum = in[0] + in[1];
  return {sum, rms_norm(sum, in[2], kEps)};
}
Tensors composed(const Tensors& in) {
  const Tensor sum = in[0] + in[1];
  return {sum, sum * at::rsqrt(sum.square().mean(-1, true) + kEps) * in[2]};
}

TEST(AddRmsNorm, IsAsExactAsTheComposition) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 5, 256}, {3, 13}, {130, 40}})
    expect_as_exact_as(composed, fused, {random(shape), random(shape), random({shape.back()})});
}

TEST(AddRmsNorm, GivesTheBitsOfTheSumAndItsNorm) {
  for (const at::ScalarType type : kTypes) {
    const Tensors in = {random({3, 70, 40}), random({3, 70, 40}), random({40})};
    const Tensors directions = directions_for(one_after_the_other, leaves(in, type));
    const Tensors mine = outputs_and_gradients(fused, leaves(in, type), directions);
    const Tensors theirs = outputs_and_gradients(one_after_the_other, leaves(in, type), directions);
    ASSERT_EQ(mine.size(), theirs.size());
    for (size_t i = 0; i < mine.size(); ++i)
      EXPECT_TRUE(at::equal(mine[i], theirs[i])) << type << ", result " << i;
  }
}

TEST(AddRmsNorm, GivesAGradientWhereOneResultIsNotUsed) {
  const auto normalized = [](const Function& f) {
    return [=](const Tensors& in) { return Tensors{f(in)[1]}; };
  };
  expect_as_exact_as(normalized(composed), normalized(fused),
                     {random({9, 24}), random({9, 24}), random({24})});
  const Tensor x = random({9, 24}, at::kFloat).requires_grad_(), dsum = random({9, 24}, at::kFloat);
  const Tensor sum =
      add_rms_norm(x, random({9, 24}, at::kFloat), random({24}, at::kFloat), kEps).sum;
  EXPECT_TRUE(at::equal(torch::autograd::grad({sum}, {x}, {dsum})[0], dsum));
}

TEST(AddRmsNorm, DependsOnNoNumberOfThreads) {
  expect_same_for_any_number_of_threads(fused,
                                        {random({301, 64}), random({301, 64}), random({64})});
}

TEST(AddRmsNorm, HasTheShapesOfTheMetaDevice) {
  expect_meta_like_real(fused, {random({2, 7, 16}), random({2, 7, 16}), random({16})});
}

TEST(AddRmsNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(add_rms_norm(at::empty({2, 4}), at::empty({1, 4}), at::empty({4}), kEps), Error);
  EXPECT_THROW(add_rms_norm(at::empty({2, 4}), at::empty({2, 4}), at::empty({3}), kEps), Error);
}

TEST(SwigluBackwardInPlace, GivesTheBitsOfSwigluAndItsGradients) {
  for (const at::ScalarType type : kTypes)
    for (const int64_t rows : {0, 1, 3, 700}) {  // 700 · 13: not a multiple of a block
      const Tensor gate = (random({rows, 13}) * 3).to(type).requires_grad_();
      const Tensor up = random({rows, 13}).to(type).requires_grad_();
      const Tensor dout = random({rows, 13}).to(type);
      const Tensor product = swiglu(gate, up);
      const Tensors expected = torch::autograd::grad({product}, {gate, up}, {dout});
      const Tensor d = dout.clone(), g = gate.detach().clone(), u = up.detach().clone();
      swiglu_backward_in_place(d, g, u);
      EXPECT_TRUE(at::equal(d, product)) << type << " " << rows;
      EXPECT_TRUE(at::equal(g, expected[0])) << type << " " << rows;
      EXPECT_TRUE(at::equal(u, expected[1])) << type << " " << rows;
    }
}

TEST(SwigluBackwardInPlace, RefusesWhatIsNotContiguous) {
  const Tensor wide = at::empty({4, 6}), narrow = wide.narrow(1, 0, 3), other = at::empty({4, 3});
  EXPECT_THROW(swiglu_backward_in_place(other, narrow, at::empty({4, 3})), Error);
}

TEST(RopeInto, GivesTheBitsOfRopeInPlaceAndElsewhere) {
  constexpr int64_t kBatch = 2, kSeq = 9, kHeads = 3, kKeyHeads = 1, kHead = 10;
  for (const at::ScalarType type : kTypes) {
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor cos = random({32, kHead / 2}).to(wide), sin = random({32, kHead / 2}).to(wide);
    for (const Tensor& positions : {Tensor(), random_ids(32, {kBatch, kSeq})}) {
      // heads next to each other in rows, as one projection of queries, keys and values stores them
      const Tensor all = random({kBatch, kSeq, kHeads + kKeyHeads + 1, kHead}).to(type);
      const Tensor q = all.narrow(2, 0, kHeads), k = all.narrow(2, kHeads, kKeyHeads);
      const auto [q_expected, k_expected] = rope(q, k, cos, sin, positions);
      const Tensor elsewhere = at::full_like(all, 7);
      rope_into(q, k, cos, sin, positions, /*inverse=*/false, elsewhere.narrow(2, 1, kHeads),
                elsewhere.narrow(2, 0, kKeyHeads));
      EXPECT_TRUE(at::equal(elsewhere.narrow(2, 1, kHeads), q_expected)) << type;
      EXPECT_TRUE(at::equal(elsewhere.narrow(2, 0, kKeyHeads), k_expected)) << type;
      EXPECT_TRUE(elsewhere.narrow(2, kHeads + kKeyHeads, 1).eq(7).all().item<bool>());
      const Tensor rest = all.narrow(2, kHeads + kKeyHeads, 1).clone();
      rope_into(q, k, cos, sin, positions, /*inverse=*/false, q, k);
      EXPECT_TRUE(at::equal(q, q_expected)) << type;
      EXPECT_TRUE(at::equal(k, k_expected)) << type;
      EXPECT_TRUE(at::equal(all.narrow(2, kHeads + kKeyHeads, 1), rest)) << type;
    }
  }
}

TEST(RopeInto, TurnsBackWithTheNegativeAngles) {
  const Tensor angle = random({9, 4}), q = random({1, 9, 2, 8}), k = random({1, 9, 1, 8});
  const Tensor q_there = q.clone(), k_there = k.clone();
  for (const bool inverse : {false, true})
    rope_into(q_there, k_there, angle.cos(), angle.sin(), Tensor(), inverse, q_there, k_there);
  EXPECT_TRUE(q_there.allclose(q));
  EXPECT_TRUE(k_there.allclose(k));
}

TEST(RopeInto, RefusesAPositionOutsideOfTheTables) {
  const Tensor q = at::empty({1, 2, 1, 4}), table = at::empty({3, 2});
  const Tensor positions = at::full({1, 2}, 3, at::kLong);
  EXPECT_THROW(rope_into(q, q, table, table, positions, false, q, q), Error);
}

}  // namespace
}  // namespace titan::ops::testing::fused_test
