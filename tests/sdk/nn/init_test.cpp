// Initial values: the generator against its authors' test vectors, the inverse error function
// against ATen's, values against the header's documentation, their distribution, and their
// independence of slices and threads.
#include <titan/nn/init.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/tensor.h>

#include "sdk/src/nn/inverse_erf.h"
#include "sdk/src/nn/philox.h"
#include "tests/sdk/nn/fake_group.h"

namespace titan::nn {
namespace {

using titan::testing::same_bits;

at::Tensor filled(const Init& init, uint64_t seed, std::string_view name,
                  const std::vector<int64_t>& shape) {
  at::Tensor out = at::empty(shape);
  fill(out, init, seed, name, shape, Slice{std::vector<int64_t>(shape.size(), 0), shape});
  return out;
}

std::vector<double> sorted_values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.reshape({-1});
  std::vector<double> values(flat.const_data_ptr<float>(),
                             flat.const_data_ptr<float>() + flat.numel());
  std::sort(values.begin(), values.end());
  return values;
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// Kolmogorov and Smirnov's statistic times sqrt(n); above 1.95 with probability 0.001.
template <class Cdf>
double ks_statistic(const std::vector<double>& sorted, Cdf cdf) {
  const double n = static_cast<double>(sorted.size());
  double distance = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double expected = cdf(sorted[i]);
    distance = std::max({distance, expected - static_cast<double>(i) / n,
                         static_cast<double>(i + 1) / n - expected});
  }
  return distance * std::sqrt(n);
}

TEST(Philox, GivesTheVectorsOfItsAuthors) {
  // kat_vectors of Random123, philox4x32 with 10 rounds
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kAll, kAll, kAll, kAll}, ~uint64_t{0}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(InverseErf, AgreesWithAtenInDoubleUpToTheLastDrawableNumber) {
  std::vector<double> points;
  for (int i = 0; i < 200000; ++i) points.push_back((2.0 * i + 1) / 200000 - 1);
  for (int k = 1; k <= 32; ++k)  // one minus the largest value of a 32-bit word
    for (double fraction : {1.0, 1.25, 1.5, 1.75})
      if (fraction * std::exp2(-k) >= 0x1p-32)
        points.push_back(1 - fraction * std::exp2(-k)), points.push_back(-points.back());
  const at::Tensor reference = at::erfinv(at::tensor(points, at::kDouble));
  double worst = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double expected = reference.const_data_ptr<double>()[i];
    if (points[i] == 0)
      EXPECT_EQ(inverse_erf(points[i]), 0);
    else
      worst = std::max(worst, std::fabs(inverse_erf(points[i]) / expected - 1));
  }
  RecordProperty("worst_relative_error_times_1e9", static_cast<int>(worst * 1e9));
  EXPECT_LT(worst, 4e-7);
}

TEST(Fill, IsWhatTheHeaderDocuments) {
  const std::string name = "layers.7.attention.wq.weight";
  const uint64_t seed = 42, key = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  // starts inside a block of four; the counters need more than 32 bits
  const int64_t total = int64_t{1} << 37, first = (int64_t{1} << 36) + 3, count = 2051;
  at::Tensor out = at::empty({count});
  fill(out, Init::normal(0.5, 2), seed, name, {total}, Slice{{first}, {count}});
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t element = static_cast<uint64_t>(first + i), counter = element / 4;
    const PhiloxBlock words = philox4x32(
        {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}, key);
    const double uniform = (words[element % 4] + 0.5) / 0x1p31 - 1;
    const double expected =
        0.5 + 2 * std::sqrt(2.0) * at::erfinv(at::tensor({uniform}, at::kDouble)).item<double>();
    EXPECT_NEAR(out.const_data_ptr<float>()[i], expected, 1e-6 * std::fabs(expected - 0.5) + 1e-7)
        << i;
  }
}

TEST(Fill, DrawsTheNormalDistribution) {
  const auto values =
      sorted_values(filled(Init::normal(1, 2), 1, "tok_embeddings.weight", {1000, 1000}));
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (double x : values) {
    const double z = (x - 1) / 2;
    sum += z, squares += z * z, cubes += z * z * z, fourths += z * z * z * z;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(cubes / n, 0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(fourths / n, 3, 4 * std::sqrt(96 / n));
  EXPECT_LT(ks_statistic(values, [](double x) { return normal_cdf((x - 1) / 2); }), 1.95);
  EXPECT_TRUE(std::isfinite(values.front()) && std::isfinite(values.back()));
}

TEST(Fill, TruncatesAtTheBounds) {
  // the output head's rule, and bounds that cut off half of the values on one side
  for (const auto& [lower, upper] :
       {std::pair{-3.0, 3.0}, std::pair{0.0, 1.5}, std::pair{-0.5, 2.5}}) {
    const double std = 0.0625, mass = normal_cdf(upper) - normal_cdf(lower);
    const auto values = sorted_values(filled(
        Init::truncated_normal(0, std, lower * std, upper * std), 3, "output.weight", {500, 1000}));
    EXPECT_GE(values.front(), static_cast<float>(lower * std));
    EXPECT_LE(values.back(), static_cast<float>(upper * std));
    EXPECT_LT(values.front(), (lower + 0.01) * std);  // the whole range is used
    EXPECT_GT(values.back(), (upper - 0.1) * std);
    EXPECT_LT(
        ks_statistic(values,
                     [&](double x) { return (normal_cdf(x / std) - normal_cdf(lower)) / mass; }),
        1.95);
    EXPECT_TRUE(std::adjacent_find(values.begin(), values.end(), [](double a, double b) {
                  return a == b && a == 0;
                }) == values.end());
  }
}

TEST(Fill, HasNoHeapOfValuesAtWideBounds) {
  // absolute bounds of 100 standard deviations: no draw may become infinite and be clamped to the
  // bound
  const auto values = sorted_values(
      filled(Init::truncated_normal(0, 0.02), 4, "layers.0.attention.wq.weight", {2000, 2000}));
  EXPECT_GT(values.front(), -0.02 * 6.5);
  EXPECT_LT(values.back(), 0.02 * 6.5);
  EXPECT_LT(ks_statistic(values, [](double x) { return normal_cdf(x / 0.02); }), 1.95);
}

TEST(Fill, GivesUnrelatedNumbersToOtherNamesAndSeeds) {
  const Init init = Init::normal(0, 1);
  const std::vector<int64_t> shape = {100000};
  const at::Tensor base = filled(init, 5, "a", shape);
  const at::Tensor others[] = {filled(init, 6, "a", shape), filled(init, 5, "b", shape),
                               base.roll(1), base.roll(4)};
  for (const at::Tensor& other : others)
    EXPECT_LT(std::fabs((base * other).mean().item<double>()), 4 / std::sqrt(1e5));
  EXPECT_TRUE(same_bits(base, filled(init, 5, "a", shape)));
}

TEST(Fill, DoesNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = filled(Init::normal(0, 1), 8, "w", {777, 131});
  at::set_num_threads(2);
  const at::Tensor two = filled(Init::normal(0, 1), 8, "w", {777, 131});
  at::set_num_threads(before);
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Fill, RoundsOnceToNarrowDtypes) {
  at::Tensor narrow = at::empty({64, 33}, at::kBFloat16);
  fill(narrow, Init::normal(0, 1), 9, "w", {64, 33}, Slice{{0, 0}, {64, 33}});
  EXPECT_TRUE(at::equal(narrow, filled(Init::normal(0, 1), 9, "w", {64, 33}).to(at::kBFloat16)));
}

TEST(Fill, KeepsConstantsAndScalars) {
  EXPECT_TRUE(at::equal(filled(Init::constant(1), 1, "norm.weight", {5}),
                        at::tensor({1, 1, 1, 1, 1}, at::kFloat)));
  EXPECT_EQ(filled(Init::constant(-2), 1, "s", {}).item<float>(), -2);
  EXPECT_TRUE(same_bits(filled(Init::normal(0, 1), 1, "s", {}).reshape({1}),
                        filled(Init::normal(0, 1), 1, "s", {1})));
}

}  // namespace
}  // namespace titan::nn
