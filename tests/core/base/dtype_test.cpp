#include "core/base/dtype.h"

#include <string>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

TEST(Dtype, IsKnownByBothOfItsNames) {
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
    EXPECT_EQ(dtype_of(text_of(dtype)), dtype);
    EXPECT_EQ(dtype_stored_as(stored_name(dtype)), dtype);
  }
  EXPECT_EQ(std::string(text_of(Dtype::bfloat16)), "bfloat16");
  EXPECT_EQ(std::string(stored_name(Dtype::bfloat16)), "BF16");
  EXPECT_EQ(std::string(stored_name(Dtype::float64)), "F64");
}

TEST(Dtype, IsNotGuessed) {
  EXPECT_EQ(dtype_of("BF16"), std::nullopt);
  EXPECT_EQ(dtype_of(""), std::nullopt);
  EXPECT_EQ(dtype_stored_as("bfloat16"), std::nullopt);
  EXPECT_EQ(dtype_stored_as("I64"), std::nullopt);
}

}  // namespace
}  // namespace titan::core
