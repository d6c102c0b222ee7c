#include "core/data/order/permutation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

std::vector<uint64_t> all_of(uint64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

TEST(Permutation, HitsEveryElementOnceWhateverTheSize) {
  for (uint64_t size : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4096, 4097, 100003}) {
    std::vector<uint64_t> order = all_of(size, 7 * size);
    std::sort(order.begin(), order.end());
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(order[i], i) << "size " << size;
  }
}

TEST(Permutation, LargeSizesStayInRange) {
  for (uint64_t size : {uint64_t{1} << 32, (uint64_t{1} << 40) + 3, uint64_t{1} << 62}) {
    const Permutation permutation(size, 3);
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_LT(permutation(size - 1 - i), size);
  }
}

TEST(Permutation, KeysGiveOrdersThatHaveNothingInCommon) {
  // a random permutation has 1 fixed point on average, for any size
  const std::vector<uint64_t> a = all_of(10000, 1), b = all_of(10000, 2);
  int fixed = 0, shared = 0, neighbours = 0;
  for (uint64_t i = 0; i < a.size(); ++i) {
    fixed += a[i] == i;
    shared += a[i] == b[i];
    neighbours += i > 0 && a[i] == a[i - 1] + 1;
  }
  EXPECT_LE(fixed, 8);
  EXPECT_LE(shared, 8);
  EXPECT_LE(neighbours, 8);
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  // chi-squared with 15 degrees of freedom exceeds 50 once in 100,000 times
  constexpr uint64_t kSize = 16, kKeys = 16000;
  for (uint64_t element : {0, 7, 15}) {
    std::vector<double> counts(kSize);
    for (uint64_t key = 0; key < kKeys; ++key) ++counts[Permutation(kSize, mix(key, 5))(element)];
    double chi_squared = 0;
    for (const double count : counts)
      chi_squared += std::pow(count - kKeys / kSize, 2) / (kKeys / kSize);
    EXPECT_LT(chi_squared, 50) << "element " << element;
  }
}

}  // namespace
}  // namespace titan::core
