// The table of Hugging Face's keys: how each row is written, read and compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/models/hf_table.h>
#include <titan/models/rope_scaling.h>

namespace titan::models_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

models::HfTable small_table() {
  using models::HfKey;
  return {
      .model_types = {"small"},
      .keys = {models::hf_written("model_type", "small"),
               {"hidden_size", "dim", 64, 32},
               {.key = "head_dim", .option = "head_dim", .ours = 16, .absent = 16, .follows = true},
               {"max_position_embeddings", "longest", 512, {}, HfKey::written_only},
               {"rope_theta", "rope_theta", 500.0, 10000.0, HfKey::written_only},
               models::hf_fixed("hidden_act", "silu"),
               models::hf_compared("quantization_config")}};
}

TEST(HfTable, WritesItsKeysInOrder) {
  EXPECT_EQ(models::hf_config(small_table()), Value::map({{"model_type", "small"},
                                                          {"hidden_size", 64},
                                                          {"head_dim", 16},
                                                          {"max_position_embeddings", 512},
                                                          {"rope_theta", 500.0},
                                                          {"hidden_act", "silu"}}));
}

TEST(HfTable, ReadsOptionsAndTheirDefaults) {
  const auto options = [](const Value& theirs) {
    return models::hf_options(small_table(), theirs);
  };
  EXPECT_EQ(options(Value::map({{"model_type", "small"}})),
            Value::map({{"dim", 32}, {"rope_theta", 10000.0}}));
  EXPECT_EQ(options(Value::map({{"model_type", "small"},
                                {"hidden_size", Value()},
                                {"head_dim", 24},
                                {"max_position_embeddings", 9},
                                {"rope_parameters", Value::map({{"rope_theta", 7.0}})}})),
            Value::map({{"dim", 32}, {"head_dim", 24}, {"longest", 9}, {"rope_theta", 7.0}}));
  EXPECT_FALSE(options(Value::map({{"model_type", "large"}})));
  EXPECT_FALSE(options(Value::map()));
}

TEST(HfTable, TellsWhatDiffers) {
  Value theirs = models::hf_config(small_table());
  EXPECT_THAT(models::hf_differences(small_table(), theirs), IsEmpty());
  theirs["max_position_embeddings"] = 1;
  theirs["head_dim"] = Value();
  EXPECT_THAT(models::hf_differences(small_table(), theirs), IsEmpty());
  theirs["hidden_size"] = Value();
  theirs["hidden_act"] = "gelu";
  theirs["quantization_config"] = Value::map();
  theirs["model_type"] = "large";
  theirs["rope_theta"] = 7.0;
  EXPECT_THAT(models::hf_differences(small_table(), theirs),
              ElementsAre("model_type is \"large\" there and \"small\" here",
                          "hidden_size is 32 there and 64 here",
                          "hidden_act is \"gelu\" there and \"silu\" here",
                          "quantization_config is set there and not set here",
                          "rope_theta is 7.0 there and 500.0 here"));
}

TEST(HfTable, ComparesAndReadsWhatIsSaidInOneWay) {
  models::HfTable table = small_table();
  table.in_one_way = [](Value config) {
    if (const Value* width = config.find("width")) config["hidden_size"] = Value(*width);
    return config;
  };
  table.also_read = [](const Value& config, Value& options) {
    options["wide"] = config.at("hidden_size").as_integer() > 40;
  };
  const Value theirs = Value::map({{"model_type", "small"}, {"width", 64}, {"rope_theta", 500}});
  EXPECT_THAT(models::hf_differences(table, theirs), IsEmpty());
  EXPECT_EQ(models::hf_options(table, theirs),
            Value::map({{"dim", 64}, {"rope_theta", 500}, {"wide", true}}));
}

TEST(HfTable, ReadsStretchedPositionsOfItsTypeAlone) {
  models::HfTable table = small_table();
  table.rope = models::hf_rope({.scaling_factor = 8});
  const Value written = models::hf_rope_scaling({.scaling_factor = 8});
  EXPECT_EQ(written, Value::map({{"rope_type", "llama3"},
                                 {"factor", 8.0},
                                 {"low_freq_factor", 1.0},
                                 {"high_freq_factor", 4.0},
                                 {"original_max_position_embeddings", 8192}}));
  EXPECT_TRUE(models::hf_rope_scaling({}).is_null());
  const auto options = [&](Value rope) {
    return models::hf_options(
               table, Value::map({{"model_type", "small"}, {"rope_scaling", std::move(rope)}}))
        .value();
  };
  EXPECT_EQ(options(written).at("rope_scaling"),
            Value::map({{"scaling_factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}}));
  EXPECT_FALSE(options(Value::map({{"rope_type", "yarn"}, {"factor", 4.0}})).find("rope_scaling"));
}

TEST(HfTable, DividesIntegersAlone) {
  const Value config = Value::map({{"a", 7}, {"b", 2}, {"zero", 0}, {"text", "7"}});
  EXPECT_EQ(models::hf_quotient(config, "a", "b"), Value(3));
  for (const char* divisor : {"zero", "text", "missing"})
    EXPECT_TRUE(models::hf_quotient(config, "a", divisor).is_null()) << divisor;
}

}  // namespace
}  // namespace titan::models_test
