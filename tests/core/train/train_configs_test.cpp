// Every job of train_configs/ is sound: it resolves without an error for its intended number of
// ranks, and its model, built on the meta device, has the published number of parameters.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "core/estimate/dry_run.h"
#include "core/train/assembly/assembly.h"

namespace titan::core {
namespace {

struct Recipe {
  const char* file;
  int world_size;
  int64_t num_parameters;
  int64_t global_batch_size;
  int num_old_keys = 0;                    ///< each causes one warning
  std::vector<std::string> warnings = {};  ///< parts of the texts of further warnings
};

/// gtest prints the file's name.
void PrintTo(const Recipe& recipe, std::ostream* out) {
  *out << recipe.file;
}

class TrainConfigs : public ::testing::TestWithParam<Recipe> {
 protected:
  static std::string path(const std::string& file) {
    return std::string(TITAN_SOURCE_DIR "/train_configs/") + file;
  }

  void SetUp() override {
    // paths in a job count from the root of the repository
    previous_ = std::filesystem::current_path();
    std::filesystem::current_path(TITAN_SOURCE_DIR);
  }
  void TearDown() override { std::filesystem::current_path(previous_); }

  std::optional<JobConfig> resolve_recipe() {
    const JobSources sources = read_sources({"--job.config_file", path(GetParam().file)});
    return try_resolve(sources, lookup_, {.world_size = GetParam().world_size}, diagnostics_);
  }
  std::vector<std::string> messages(Severity severity) const {
    std::vector<std::string> found;
    for (const Diagnostic& diagnostic : diagnostics_.sorted())
      if (diagnostic.severity == severity) found.push_back(diagnostic.message);
    return found;
  }

  Catalog catalog_{std::vector<std::filesystem::path>{TITAN_PLUGIN_DIR}};
  Registry registry_{catalog_};
  RegistryLookup lookup_{catalog_, registry_};
  Diagnostics diagnostics_;

 private:
  std::filesystem::path previous_;
};

TEST_P(TrainConfigs, ResolveWithoutAMistake) {
  const auto config = resolve_recipe();
  EXPECT_THAT(messages(Severity::error), ::testing::IsEmpty());
  EXPECT_THAT(messages(Severity::not_built), ::testing::IsEmpty());
  ASSERT_TRUE(config) << diagnostics_.report();
  EXPECT_EQ(config->layout.global_batch_size, GetParam().global_batch_size);
  const Layout& layout = config->layout;
  EXPECT_EQ(layout.replicate * layout.shard * layout.context * layout.tensor * layout.pipeline,
            GetParam().world_size);
}

TEST_P(TrainConfigs, WarnOfOldKeysAndOfNothingElseThanIsExpected) {
  resolve_recipe();
  std::vector<std::string> rest = messages(Severity::warning);
  const auto take = [&rest](const std::string& part) {
    const auto found = std::find_if(rest.begin(), rest.end(), [&](const std::string& text) {
      return text.find(part) != std::string::npos;
    });
    if (found == rest.end()) return false;
    rest.erase(found);
    return true;
  };
  for (const std::string& expected : GetParam().warnings)
    EXPECT_TRUE(take(expected)) << "no warning says: " << expected << "\n" << diagnostics_.report();
  EXPECT_EQ(static_cast<int>(rest.size()), GetParam().num_old_keys) << diagnostics_.report();
  for (const std::string& warning : rest)
    EXPECT_THAT(warning,
                ::testing::AnyOf(::testing::HasSubstr(" old "), "'model.norm_type' has no effect",
                                 "'checkpoint.interval_type' has no effect"));
}

/// Features that are not built yet are skipped, so that every shipped job starts. Simulates each
/// run in its full size, with local data and assets.
TEST_P(TrainConfigs, StartWhereTheirFilesAre) {
  JobSources sources = read_sources({"--job.config_file", path(GetParam().file)});
  sources.arguments.insert(
      sources.arguments.end(),
      {"--model.hf_assets_path", "tests/assets/tokenizer", "--training.dataset", "jsonl",
       "--training.dataset_path", "tests/assets/corpus/train.jsonl"});
  const JobConfig config =
      resolve_partly(sources, lookup_, {.world_size = GetParam().world_size}, diagnostics_);
  ASSERT_TRUE(diagnostics_.can_start()) << diagnostics_.report();
  EXPECT_TRUE(dry_run(config, registry_, {}, diagnostics_));
  EXPECT_TRUE(diagnostics_.can_start()) << diagnostics_.report();
}

TEST_P(TrainConfigs, BuildTheModelWithItsPublishedNumberOfParameters) {
  const auto config = resolve_recipe();
  ASSERT_TRUE(config) << diagnostics_.report();
  const MetaModel meta = build_meta_model(*config, registry_);
  EXPECT_EQ(meta.part->num_parameters(), GetParam().num_parameters);
  for (const nn::Parameter* parameter : meta.part->parameters())
    ASSERT_TRUE(parameter->value().is_meta());
}

const Recipe kRecipes[] = {
    {.file = "debug_model.toml",
     .world_size = 1,
     .num_parameters = 6'163'712,
     .global_batch_size = 2},
    {.file = "deepseek_v3_debug.toml",
     .world_size = 1,
     .num_parameters = 33'014'016,
     .global_batch_size = 2},
    {.file = "deepseek_v3_16b.toml",
     .world_size = 8,
     .num_parameters = 15'706'484'224,
     .global_batch_size = 32},
    {.file = "deepseek_v3_671b.toml",
     .world_size = 256,
     .num_parameters = 671'026'404'352,
     .global_batch_size = 1024},
    {.file = "finetune_debug.toml",
     .world_size = 1,
     .num_parameters = 6'163'712,
     .global_batch_size = 2},
    {.file = "llama2_7b.toml",
     .world_size = 64,
     .num_parameters = 6'738'415'616,
     .global_batch_size = 1024},
    {.file = "llama3_2_1b.toml",
     .world_size = 8,
     .num_parameters = 1'235'814'400,
     .global_batch_size = 32},
    {.file = "llama3_2_3b.toml",
     .world_size = 8,
     .num_parameters = 3'212'749'824,
     .global_batch_size = 16},
    {.file = "llama3_8b.toml",
     .world_size = 64,
     .num_parameters = 8'030'261'248,
     .global_batch_size = 64},
    {.file = "llama3_70b.toml",
     .world_size = 64,
     .num_parameters = 70'553'706'496,
     .global_batch_size = 64},
    {.file = "llama3_405b.toml",
     .world_size = 128,
     .num_parameters = 405'853'388'800,
     .global_batch_size = 32},
    {.file = "gpt_oss_debug.toml",
     .world_size = 1,
     .num_parameters = 81'489'440,
     .global_batch_size = 2},
    {.file = "llama4_debug.toml",
     .world_size = 1,
     .num_parameters = 15'017'216,
     .global_batch_size = 2},
    {.file = "llama4_17bx16e.toml",
     .world_size = 64,
     .num_parameters = 107'769'861'120,
     .global_batch_size = 64},
    {.file = "llama4_17bx128e.toml",
     .world_size = 256,
     .num_parameters = 400'711'848'960,
     .global_batch_size = 32},
    {.file = "mixtral_debug.toml",
     .world_size = 1,
     .num_parameters = 14'428'416,
     .global_batch_size = 2},
    {.file = "qwen3_debug.toml",
     .world_size = 1,
     .num_parameters = 31'987'968,
     .global_batch_size = 2},
    {.file = "qwen3_moe_debug.toml",
     .world_size = 1,
     .num_parameters = 315'758'848,
     .global_batch_size = 2},
    {.file = "qwen3_0.6b.toml",
     .world_size = 8,
     .num_parameters = 596'049'920,
     .global_batch_size = 32},
    {.file = "qwen3_1.7b.toml",
     .world_size = 8,
     .num_parameters = 1'720'574'976,
     .global_batch_size = 32},
    {.file = "qwen3_32b.toml",
     .world_size = 8,
     .num_parameters = 32'762'123'264,
     .global_batch_size = 16},
    {.file = "layouts/deepseek_v3_dualpipev_fsdp_ep.toml",
     .world_size = 4,
     .num_parameters = 33'014'016,
     .global_batch_size = 8},
    {.file = "layouts/deepseek_v3_fsdp_ep_compile.toml",
     .world_size = 4,
     .num_parameters = 33'014'016,
     .global_batch_size = 8},
    {.file = "layouts/deepseek_v3_pp_fsdp_tp_ep.toml",
     .world_size = 8,
     .num_parameters = 33'014'016,
     .global_batch_size = 8},
    {.file = "layouts/deepseek_v3_pp_fsdp_tp_ep_etp.toml",
     .world_size = 8,
     .num_parameters = 33'014'016,
     .global_batch_size = 8},
    {.file = "layouts/gpt_oss_fsdp_tp_ep.toml",
     .world_size = 4,
     .num_parameters = 81'489'440,
     .global_batch_size = 8},
    {.file = "layouts/llama4_pp_fsdp_tp_ep_compile.toml",
     .world_size = 8,
     .num_parameters = 15'017'216,
     .global_batch_size = 8},
    {.file = "layouts/qwen3_fsdp_tp.toml",
     .world_size = 4,
     .num_parameters = 31'987'968,
     .global_batch_size = 8},
    {.file = "layouts/qwen3_moe_fsdp_tp_ep_etp.toml",
     .world_size = 4,
     .num_parameters = 315'758'848,
     .global_batch_size = 8},
    {.file = "legacy/llama3_8b_8gpu.toml",
     .world_size = 8,
     .num_parameters = 8'030'261'248,
     .global_batch_size = 32,
     .num_old_keys = 12},
    {.file = "legacy/llama3_70b_32gpu.toml",
     .world_size = 32,
     .num_parameters = 70'553'706'496,
     .global_batch_size = 16,
     .num_old_keys = 14},
    {.file = "legacy/llama3_405b_2048gpu.toml",
     .world_size = 2048,
     .num_parameters = 405'853'388'800,
     .global_batch_size = 32,
     .num_old_keys = 16,
     .warnings = {"ranks will idle"}},
};

INSTANTIATE_TEST_SUITE_P(Recipe, TrainConfigs, ::testing::ValuesIn(kRecipes), [](const auto& info) {
  std::string name = std::filesystem::path(info.param.file).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(TrainConfigFolder, HoldsNoRecipeThatIsNotTested) {
  std::set<std::string> tested, found;
  for (const Recipe& recipe : kRecipes) tested.insert(recipe.file);
  const std::filesystem::path folder = TITAN_SOURCE_DIR "/train_configs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".toml")
      found.insert(std::filesystem::relative(entry.path(), folder).string());
  EXPECT_EQ(found, tested);
}

}  // namespace
}  // namespace titan::core
