// The options that the shipped plugins declare, from the plugins themselves; tests of the
// configuration use their own schemas. Compares every default with a golden file, and those that
// torchtitan v0.2.2 documents with its reference.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/value.h>

#include "core/config/legacy/plugin_keys.h"
#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "tests/core/config/reference_defaults.h"
#include "tests/golden.h"

namespace titan::core {
namespace {

class ShippedDefaults : public ::testing::Test {
 protected:
  void SetUp() override {
    previous_ = std::filesystem::current_path();
    std::filesystem::current_path(TITAN_SOURCE_DIR);  // default paths are relative to this folder
  }
  void TearDown() override { std::filesystem::current_path(previous_); }

  /// One line per option of the component.
  std::string defaults_of(const std::string& kind, const std::string& name) {
    std::string lines;
    for (const Option& option : registry_.component(kind, name).schema.options)
      lines +=
          kind + " " + name + ": " + option.name + " = " + to_json(option.default_value) + "\n";
    return lines;
  }

  Catalog catalog_{std::vector<std::filesystem::path>{TITAN_PLUGIN_DIR}};
  Registry registry_{catalog_};
  RegistryLookup lookup_{catalog_, registry_};

 private:
  std::filesystem::path previous_;
};

/// The value at a dotted key of nested maps; null when there is none.
Value value_at(const Value& sections, const std::string& key) {
  const Value* at = &sections;
  for (const std::string& part : split_dotted(key)) {
    at = at->find(part);
    if (!at) return {};
  }
  return *at;
}

TEST_F(ShippedDefaults, OfEveryComponentAreTheWrittenOnes) {
  std::string found;
  for (const std::string& kind : plugin_kinds()) {
    if (kind == "flavor") continue;  // other tests check their values
    for (const std::string& name : catalog_.names(kind)) {
      // these plugins may be missing, or lack libraries
      if (name == "parquet" || name == "cuda") continue;
      found += defaults_of(kind, name);
    }
  }
  testing::expect_golden_text("component_defaults.txt", found);
  if (!catalog_.providers("dataset", "parquet").empty())
    testing::expect_golden_text("component_defaults_parquet.txt",
                                defaults_of("dataset", "parquet"));
}

TEST_F(ShippedDefaults, MakeAJobThatSaysNothingTheReferences) {
  const JobConfig config = resolve(read_sources("empty.toml", "", {}), lookup_).config;
  const auto expect_equal = [&](const ReferenceDefault& row) {
    // on a CPU, bfloat16 applies only when the job sets it
    const bool is_replaced = std::string_view(row.key) == "training.mixed_precision_param";
    EXPECT_EQ(value_at(config.resolved, row.key),
              is_replaced ? Value("float32") : parse_json(row.default_json))
        << row.key;
  };
  for (const ReferenceDefault& row : kReferenceDefaults) expect_equal(row);
  for (const ReferenceDefault& row : kReferencePluginDefaults) expect_equal(row);
}

/// The core's row that leaves a key to a plugin; null when there is none.
const PluginKey* plugin_key(const std::string& key) {
  for (const PluginKey& row : kPluginKeys) {
    const std::string section = std::string(row.section) + ".";
    if (*row.key ? key == section + row.key : key.starts_with(section)) return &row;
  }
  return nullptr;
}

TEST_F(ShippedDefaults, OfUnchosenPluginsAreTheReferences) {
  for (const ReferenceDefault& reference : kReferenceUnchosenDefaults) {
    const std::string key = reference.key;
    const PluginKey* row = plugin_key(key);
    ASSERT_NE(row, nullptr) << key;
    const Schema& schema = registry_.component(row->kind, row->plugin).schema;
    const Option* option = schema.find(key.substr(key.rfind('.') + 1));
    ASSERT_NE(option, nullptr) << key;
    EXPECT_EQ(option->default_value, parse_json(reference.default_json)) << key;
  }
}

TEST_F(ShippedDefaults, EveryKeyThatIsLeftToAPluginIsOneOfTheReference) {
  for (const PluginKey& row : kPluginKeys) {
    const std::string key = row.section + std::string(*row.key ? "." : "") + row.key;
    const auto* const found = std::find_if(
        std::begin(kReferenceUnchosenDefaults), std::end(kReferenceUnchosenDefaults),
        [&](const ReferenceDefault& reference) {
          return key == reference.key || std::string_view(reference.key).starts_with(key + ".");
        });
    EXPECT_NE(found, std::end(kReferenceUnchosenDefaults)) << key;
  }
}

TEST_F(ShippedDefaults, WordsOfQuantizationAreTheReferences) {
  const auto words = [&](const char* converter, const char* option) {
    return registry_.component("converter", converter).schema.find(option)->choices;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("quantize.linear.float8", "recipe_name"),
            (Words{"tensorwise", "rowwise", "rowwise_with_gw_hp"}));
  // v0.2.2 accepts any name; the last one is Titan's
  EXPECT_EQ(
      words("quantize.linear.mx", "recipe_name"),
      (Words{"mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated", "mxfp8_emulated_rceil"}));
  EXPECT_EQ(words("quantize.linear.mx", "mxfp8_dim1_cast_kernel_choice"),
            (Words{"triton", "cuda", "torch"}));
  EXPECT_EQ(words("quantize.grouped_mm.mx", "recipe_name"), (Words{"mxfp8", "mxfp8_emulated"}));
}

}  // namespace
}  // namespace titan::core
