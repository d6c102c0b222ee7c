// Comparison of two Hugging Face config.json: values, defaults, tables of positions.
#include <titan/hf_config.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HfConfig, NumbersAreEqualByValue) {
  const std::vector<HfMember> members = {{"a"}, {"b"}, {"c", 1.0}};
  const Value ours = Value::map({{"a", 10000.0}, {"b", true}, {"c", 1}});
  EXPECT_THAT(hf_config_differences(members, ours, Value::map({{"a", 10000}, {"b", true}})),
              IsEmpty());
  EXPECT_THAT(hf_config_differences(members, ours, Value::map({{"a", 9999}, {"b", 1}, {"c", 2}})),
              ElementsAre("a is 9999 there and 10000.0 here", "b is 1 there and true here",
                          "c is 2 there and 1 here"));
}

TEST(HfConfig, AScalingThatDoesNothingIsNone) {
  const Value none = Value::map({{"rope_theta", 500000}});
  for (const Value& factor : {Value(1), Value(1.0)}) {
    const Value scaled =
        Value::map({{"rope_theta", 500000.0},
                    {"rope_scaling", Value::map({{"rope_type", "llama3"}, {"factor", factor}})}});
    EXPECT_THAT(hf_config_differences(hf_rope_members(), none, scaled), IsEmpty());
  }
  const Value by_two =
      Value::map({{"rope_parameters",
                   Value::map({{"type", "llama3"}, {"factor", 2}, {"rope_theta", 500000}})}});
  EXPECT_THAT(hf_config_differences(hf_rope_members(), none, by_two),
              ElementsAre("rope_type is \"llama3\" there and \"default\" here",
                          "factor is 2 there and not set here"));
}

}  // namespace
}  // namespace titan
