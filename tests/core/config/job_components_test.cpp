// Which available and buildable plugins a job uses.
#include "core/config/job_components.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

std::set<std::string> plugins_of_job(const Catalog& catalog, const std::string& toml,
                                     int ranks = 1) {
  Registry registry(catalog);
  std::set<std::string> plugins;
  for (const UsedComponent& used :
       components_of_job(read_sources("job.toml", toml, {}), catalog, registry, ranks))
    plugins.insert(used.entry->manifest.plugin);
  return plugins;
}

constexpr const char* kJob =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[optimizer]\nname = \"Lion\"\n"
    "[training]\ndataset = \"jsonl\"\n[device]\nname = \"cpu\"\n";

TEST(JobComponents, AreThoseThatTheJobNamesAndItsLayoutNeeds) {
  const Catalog catalog({std::string(TITAN_PLUGIN_DIR)});
  const std::set<std::string> expected = {
      "llama",   "huggingface",  "lion",     "warmup_stable_decay", "cpu", "jsonl_dataset",
      "console", "jsonl_logger", "recompute"};
  std::set<std::string> used = plugins_of_job(catalog, kJob);
  used.erase("tensorboard");  // a default of the configuration that may change
  EXPECT_EQ(used, expected);
  EXPECT_THAT(plugins_of_job(catalog,
                             std::string(kJob) + "[parallelism]\ntensor_parallel_degree = 2\n"
                                                 "pipeline_parallel_degree = 2\n",
                             4),
              ::testing::IsSupersetOf({"tensor", "pipeline"}));
}

TEST(JobComponents, AreKnownBeforeAnythingIsBuilt) {
  TemporaryFolder folder;
  std::filesystem::copy_file(std::filesystem::path(TITAN_PLUGIN_DIR) / "plugins.txt",
                             folder.path() / "plugins.txt");
  const Catalog catalog({folder.path()});
  const std::set<std::string> used = plugins_of_job(catalog, kJob);
  EXPECT_THAT(used, ::testing::IsSupersetOf({"llama", "llama_flavors", "lion", "huggingface"}));
  EXPECT_FALSE(used.contains("muon"));
}

TEST(JobComponents, SayNothingOfMistakes) {
  const Catalog catalog({std::string(TITAN_PLUGIN_DIR)});
  EXPECT_THAT(plugins_of_job(catalog, "[optimizer]\nname = \"Lion\"\nlr = \"high\"\n[nonsense]\n"),
              ::testing::Contains("lion"));
}

}  // namespace
}  // namespace titan::core
