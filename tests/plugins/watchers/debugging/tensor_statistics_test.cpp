// Statistics of tensors, computed by hand, and hashes that do not depend on sharding.
#include "plugins/watchers/debugging/tensor_statistics.h"

#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace titan::debugging {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(TensorStatistics, AreThoseOfTheFiniteElements) {
  const TensorStatistics s =
      statistics_of(at::tensor({3.0f, kNan, -1.0f, kInf, 4.0f, -kInf}).view({2, 3}));
  EXPECT_EQ(s.count, 6);
  EXPECT_EQ(s.num_nan, 1);
  EXPECT_EQ(s.num_inf, 2);
  EXPECT_EQ(s.first_bad, 1);
  EXPECT_DOUBLE_EQ(s.mean, 2);
  EXPECT_DOUBLE_EQ(s.rms, std::sqrt(26.0 / 3));
  EXPECT_EQ(s.min, -1);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(bad_values_text(s, {2, 3}),
            "3 of 6 values are bad (nan 1, inf 2), the first at [0, 1]; the others are between -1 "
            "and 4");
}

TEST(TensorStatistics, KnowEveryTypeOfNumberThatLayersUse) {
  const at::Tensor values = at::tensor({1.5f, -2.0f, 0.25f});
  for (const at::ScalarType type :
       {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    const TensorStatistics s = statistics_of(values.to(type));
    EXPECT_EQ(s.count, 3) << type;
    EXPECT_EQ(s.min, -2) << type;
    EXPECT_EQ(s.max, 1.5) << type;
    EXPECT_FALSE(has_bad_values(values.to(type))) << type;
  }
  EXPECT_EQ(statistics_of(at::arange(4)).mean, 1.5);
  EXPECT_TRUE(has_bad_values(at::tensor({1.0f, kNan}).to(at::kFloat8_e4m3fn)));
}

TEST(TensorStatistics, BadIsOnlyWhatIsNoNumberHoweverLargeTheOthersAre) {
  EXPECT_FALSE(has_bad_values(at::full({100}, std::numeric_limits<float>::max())));
  EXPECT_FALSE(has_bad_values(at::full({100}, 65504.0f).to(at::kHalf)));
  EXPECT_TRUE(has_bad_values(at::tensor({0.0f, -kInf})));
  EXPECT_TRUE(has_bad_values(at::tensor({kNan, 1.0f})));
  EXPECT_FALSE(has_bad_values(at::empty({0})));
  EXPECT_FALSE(has_bad_values(at::arange(3)));
  EXPECT_FALSE(has_bad_values(at::Tensor()));
}

TEST(TensorStatistics, HashesOfPiecesAddUpHoweverTheTensorIsCut) {
  const at::Tensor whole = at::arange(60, at::kFloat).view({5, 4, 3});
  const uint64_t hash = statistics_of(whole).hash;
  for (const int64_t dim : {0, 1, 2}) {
    uint64_t sum = 0;
    int64_t at_dim = 0;
    for (const at::Tensor& piece : whole.chunk(2, dim)) {
      GlobalPart part{.offsets = {0, 0, 0}, .shape = {5, 4, 3}};
      part.offsets[static_cast<size_t>(dim)] = at_dim;
      at_dim += piece.size(dim);
      sum += statistics_of(piece, part).hash;
    }
    EXPECT_EQ(sum, hash) << "cut along " << dim;
  }
}

TEST(TensorStatistics, HashesSeeEveryBitAndItsPlace) {
  const at::Tensor values = at::arange(10, at::kFloat);
  const uint64_t hash = statistics_of(values).hash;
  EXPECT_EQ(statistics_of(values.clone()).hash, hash);
  EXPECT_NE(statistics_of(values.flip(0)).hash, hash);
  at::Tensor other = values.clone();
  other[0] = -0.0;
  EXPECT_NE(statistics_of(other).hash, hash) << "zero with a sign";
  other = values.clone();
  other[7] = std::nextafter(7.0f, 8.0f);
  EXPECT_NE(statistics_of(other).hash, hash);
}

}  // namespace
}  // namespace titan::debugging
