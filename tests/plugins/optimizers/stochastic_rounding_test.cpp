// Stochastic rounding to bfloat16: unbiased, the same for a slice as for the whole, and its effect
// on weights under AdamW.
#include <titan/nn/rounding.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include "tests/plugins/optimizers/optimizer_fixture.h"
#include "tests/sdk/nn/fake_group.h"

namespace titan {
namespace {

using namespace titan::testing;

nn::Slice whole_of(const std::vector<int64_t>& shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape};
}

at::Tensor rounded(const at::Tensor& values, uint64_t seed = 1, std::string_view name = "w",
                   int64_t step = 1) {
  const std::vector<int64_t> shape = values.sizes().vec();
  at::Tensor out = at::empty(shape, at::kBFloat16);
  nn::round_stochastically(out, values, seed, name, step, shape, whole_of(shape));
  return out;
}

TEST(StochasticRounding, HasTheValueAsItsMean) {
  constexpr int64_t kDraws = 200'000;
  constexpr double kStep = 1.0 / 128;  // between neighbours of bfloat16 above 1
  for (const double share : {0.03125, 0.3, 0.5, 0.9})
    for (const double sign : {1.0, -1.0}) {
      const at::Tensor draws =
          rounded(at::full({kDraws}, sign * (1 + share * kStep))).to(at::kDouble) * sign;
      EXPECT_EQ(((draws != 1.0) & (draws != 1.0 + kStep)).sum().item<int64_t>(), 0);
      const double mean = ((draws - 1.0) / kStep).mean().item<double>();
      const double deviation = std::sqrt(share * (1 - share) / kDraws);
      EXPECT_NEAR(mean, share, 5 * deviation) << sign;
    }
}

TEST(StochasticRounding, KeepsWhatBfloat16Holds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor exact = at::tensor({0.0f, -0.0f, 1.5f, -3.0f, 1e30f, kInfinity, -kInfinity})
                               .to(at::kBFloat16)
                               .to(at::kFloat);
  for (int64_t step = 1; step < 50; ++step)
    EXPECT_TRUE(same_bits(rounded(exact, 1, "w", step).to(at::kFloat), exact));
  // the largest bit pattern of a NaN: adding to it would give zero
  const at::Tensor nan = at::full({64}, 0x7FFFFFFF, at::kInt).view(at::kFloat);
  EXPECT_TRUE(rounded(nan).isnan().all().item<bool>());
}

TEST(StochasticRounding, GivesASliceTheBitsOfTheWhole) {
  const std::vector<int64_t> shape = {5, 7, 9};
  const at::Tensor values = at::sin(at::arange(5 * 7 * 9).to(at::kFloat)).view(shape);
  const at::Tensor whole = rounded(values, 3, "layers.0.w", 11);
  const nn::Slice slice{{1, 3, 2}, {3, 4, 5}};
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.narrow(0, 1, 3).narrow(1, 3, 4).narrow(2, 2, 5).contiguous();
  };
  at::Tensor part = at::empty(slice.sizes, at::kBFloat16);
  nn::round_stochastically(part, cut(values), 3, "layers.0.w", 11, shape, slice);
  EXPECT_TRUE(at::equal(part, cut(whole)));
}

TEST(StochasticRounding, DrawsAnewForEverySeedNameAndStep) {
  const at::Tensor values = at::full({4096}, 1 + 1.0 / 256);
  const at::Tensor first = rounded(values);
  EXPECT_TRUE(at::equal(first, rounded(values)));
  for (const at::Tensor& other :
       {rounded(values, 2), rounded(values, 1, "v"), rounded(values, 1, "w", 2)}) {
    const double share = (first != other).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(share, 0.5, 0.05);  // independent
  }
}

/// A bfloat16 parameter of 4 columns. Its rows are sharded over `size` ranks; this one is `rank`.
std::unique_ptr<Parameter> narrow_parameter(int64_t rows, int rank = 0, int size = 1) {
  auto p = std::make_unique<Parameter>(std::vector<int64_t>{rows, 4}, nn::Init::constant(1));
  p->set_name("w");
  if (size > 1) p->shard_over(0, fake_group(rank, size));
  p->materialize(c10::kCPU, at::kBFloat16, 1);
  return p;
}

std::unique_ptr<Optimizer> rounding_adamw(Parameter& p, bool rounds = true) {
  return optimizer("AdamW", {{"lr", 1e-4}, {"weight_decay", 0.0}, {"stochastic_rounding", rounds}},
                   {&p});
}

TEST(StochasticRounding, LetsSmallUpdatesArrive) {
  for (const bool rounds : {false, true}) {
    const auto p = narrow_parameter(4096);
    const auto adamw = rounding_adamw(*p, rounds);
    for (int step = 0; step < 20; ++step) {
      p->shard().mutable_grad() = at::full({4096, 4}, 1.0, at::kBFloat16);
      adamw->step(1);  // each by 1e-4, a fortieth of the distance to the next bfloat16 below 1
    }
    const double moved = 1 - p->shard().detach().to(at::kDouble).mean().item<double>();
    if (rounds)
      EXPECT_NEAR(moved, 20 * 1e-4, 1e-4);
    else
      EXPECT_EQ(moved, 0);
  }
}

TEST(StochasticRounding, IsTheSameUnderEveryLayout) {
  constexpr int64_t kRows = 10;
  const auto gradient = [](int step) {
    return at::sin(at::arange(kRows * 4).to(at::kFloat) * (step + 1)).view({kRows, 4});
  };
  const auto run = [&](Parameter& p) {
    const auto adamw = rounding_adamw(p);
    for (int step = 0; step < 30; ++step) {
      const nn::Slice& slice = p.slice();
      p.shard().mutable_grad() =
          gradient(step).narrow(0, slice.offsets[0], slice.sizes[0]).to(at::kBFloat16);
      adamw->step(1);
    }
    return p.shard().detach();
  };
  const auto whole = narrow_parameter(kRows);
  const at::Tensor expected = run(*whole);
  EXPECT_FALSE(at::equal(expected, at::ones_like(expected)));
  for (const int size : {2, 3, 4})
    for (int rank = 0; rank < size; ++rank) {
      const auto part = narrow_parameter(kRows, rank, size);
      const nn::Slice& slice = part->slice();
      EXPECT_TRUE(at::equal(run(*part), expected.narrow(0, slice.offsets[0], slice.sizes[0])))
          << rank << " of " << size;
    }
}

}  // namespace
}  // namespace titan
