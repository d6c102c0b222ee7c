// Tests of the flavor @FULL_NAME@: Titan checks its options against the model's when a run selects it.
#include <gtest/gtest.h>

#include <titan/testing/component.h>

namespace {

TEST(@CLASS@, IsAPresetOfLlama3) {
  ASSERT_EQ(titan::testing::plugin().flavors().size(), 1u);
  const titan::Flavor& flavor = titan::testing::plugin().flavors().front();
  EXPECT_EQ(flavor.model, "llama3");
  EXPECT_EQ(flavor.name, "@FULL_NAME@");
}

TEST(@CLASS@, HeadsDivideTheWidth) {
  const titan::Value& preset = titan::testing::plugin().flavors().front().preset;
  EXPECT_EQ(preset.at("dim").as_integer() % preset.at("n_heads").as_integer(), 0);
}

}  // namespace
