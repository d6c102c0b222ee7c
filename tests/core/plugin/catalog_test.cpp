// The catalog finds plugin files without opening them.
#include "core/plugin/catalog.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/plugin/listing.h"
#include "core/plugin/registry.h"
#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

TEST(Catalog, KnowsWhatFilesProvideWithoutOpeningThem) {
  const Catalog catalog({plugin_folder("sound"), plugin_folder("foreign_flavor")});
  EXPECT_EQ(catalog.names("lr_scheduler"), (std::vector<std::string>{"Ramp", "acme/fragile"}));
  EXPECT_EQ(catalog.names("flavor"),
            (std::vector<std::string>{"nowhere/tiny", "toy/broken", "toy/large", "toy/small"}));
  ASSERT_EQ(catalog.providers("model", "toy").size(), 1u);
  EXPECT_EQ(catalog.providers("model", "toy").front()->file, plugin_file("sound"));
  EXPECT_TRUE(catalog.providers("model", "Toy").empty());
  EXPECT_EQ(::dlopen(plugin_file("foreign_flavor").c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr);
}

TEST(Catalog, SplitsNamesOfFlavorsBehindTheLongestModel) {
  const std::vector<std::string> models = {"llama3", "acme/llama3", "acme"};
  const auto split = [&](const char* name) {
    const FlavorName names = split_flavor(name, models);
    return names.model + " " + names.flavor;
  };
  EXPECT_EQ(split("llama3/8B"), "llama3 8B");
  EXPECT_EQ(split("llama3/acme/odd"), "llama3 acme/odd");
  EXPECT_EQ(split("acme/llama3/8B"), "acme/llama3 8B");
  EXPECT_EQ(split("acme/llama3/other/odd"), "acme/llama3 other/odd");
  EXPECT_EQ(split("nobody/knows/it"), "nobody/knows it");
  EXPECT_THROW(split("llama3"), Error);
}

TEST(Catalog, KeepsTheOrderOfTheSearchPathAndSearchesEachFolderOnce) {
  TemporaryFolder folder;
  fs::create_directory_symlink(plugin_folder("sound"), folder.path() / "again");
  const Catalog catalog({plugin_folder("twins"), plugin_folder("sound"),
                         plugin_folder("twins") / "../twins", folder.path() / "again"});
  std::vector<std::string> plugins;
  for (const CatalogEntry& entry : catalog.entries()) plugins.push_back(entry.manifest.plugin);
  EXPECT_EQ(plugins, (std::vector<std::string>{"twin_a", "twin_b", "more_flavors", "sound"}));
  const std::string trail = catalog.search_trail();
  EXPECT_EQ(std::count(trail.begin(), trail.end(), '\n'), 2) << trail;
}

TEST(Catalog, LooksAtPluginFilesOnlyAndNotIntoFolders) {
  TemporaryFolder folder;
  fs::copy_file(plugin_file("sound"), folder.path() / "sound.so");
  fs::create_directory(folder.path() / "inner");
  fs::copy_file(plugin_file("sound"), folder.path() / "inner/sound.plugin.so");
  EXPECT_TRUE(Catalog({folder.path()}).entries().empty());
}

TEST(Catalog, KnowsWhatABuildTreeCanBuild) {
  TemporaryFolder folder;
  fs::copy_file(plugin_file("sound"), folder.path() / "sound.plugin.so");
  write(folder.path() / "plugins.txt",
        "# build: make\n"
        "sound lr_scheduler:Ramp model:toy\n"
        "momentum optimizer:acme/momentum optimizer:acme/nesterov\n");
  const Catalog catalog({folder.path()});
  EXPECT_EQ(catalog.providers("model", "toy").size(), 1u);  // the file overrides its row
  EXPECT_EQ(catalog.names("optimizer"),
            (std::vector<std::string>{"acme/momentum", "acme/nesterov"}));
  ASSERT_EQ(catalog.providers("optimizer", "acme/nesterov").size(), 1u);
  EXPECT_EQ(catalog.providers("optimizer", "acme/nesterov").front()->build_command,
            "make momentum");
  EXPECT_THAT(listing(catalog, "optimizer", Columns::files),
              ::testing::HasSubstr("not built: make momentum"));
  EXPECT_THAT(catalog.search_trail(), ::testing::HasSubstr(": 1 plugin file"));

  Registry registry(catalog);
  try {
    registry.component("optimizer", "acme/momentum");
    FAIL() << "a plugin without a file was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("plugin 'momentum' is not built yet"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("build it: make momentum"));
  }
}

TEST(Catalog, TellsWhereItLookedAndWhatItPassedOver) {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "empty");
  fs::create_directory(folder.path() / "some");
  write(folder.path() / "file", "no folder");
  fs::copy_file(plugin_file("sound"), folder.path() / "some/a.plugin.so");
  write(folder.path() / "some/b.plugin.so", "no library");
  fs::create_symlink("gone", folder.path() / "some/c.plugin.so");
  const Catalog catalog({folder.path() / "empty", folder.path() / "some", folder.path() / "absent",
                         folder.path() / "file"});
  EXPECT_EQ(replaced(catalog.search_trail(), folder.path().string(), "<folder>"),
            "looked in\n"
            "    <folder>/empty: 0 plugin files\n"
            "    <folder>/some: 3 plugin files\n"
            "    <folder>/absent: does not exist\n"
            "    <folder>/file: is not a folder\n"
            "  passed over\n"
            "    cannot read plugin file <folder>/some/b.plugin.so: it is not an ELF file\n"
            "    cannot read plugin file <folder>/some/c.plugin.so: it is a link to gone, which "
            "does not exist");
}

TEST(Catalog, ReadsAHundredFilesQuickly) {
  TemporaryFolder folder;
  const std::string bytes = contents(plugin_file("sound"));
  for (int i = 0; i < 100; ++i) write(folder.path() / (std::to_string(i) + ".plugin.so"), bytes);
  const auto begin = std::chrono::steady_clock::now();
  const Catalog catalog({folder.path()});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(catalog.entries().size(), 100u);
  RecordProperty("milliseconds", std::to_string(took.count()));
}

TEST(SearchPath, IsTheConfigurationThenTheEnvironmentThenTheInstallation) {
  ::setenv("TITAN_PLUGIN_PATH", "/from/environment::relative:", 1);
  const auto folders = plugin_search_path({"configured"});
  ::unsetenv("TITAN_PLUGIN_PATH");
  ASSERT_EQ(folders.size(), 4u);
  EXPECT_EQ(folders[0], "configured");
  EXPECT_EQ(folders[1], "/from/environment");
  EXPECT_EQ(folders[2], "relative");
  EXPECT_EQ(folders[3],
            fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/titan/plugins");
}

TEST(Listing, ShowsUsablePluginsThenTheOthersWithTheReason) {
  TemporaryFolder folder;
  fs::copy_file(plugin_file("sound"), folder.path() / "sound.plugin.so");
  fs::copy_file(plugin_file("wrong_torch"), folder.path() / "wrong_torch.plugin.so");
  write(folder.path() / "text.plugin.so", "no library");
  const std::string text =
      replaced(listing(Catalog({folder.path()}), "lr_scheduler", Columns::files),
               folder.path().string(), "<folder>");
  EXPECT_EQ(text,
            "kind          name          plugin  version  file\n"
            "lr_scheduler  Ramp          sound   1.0.0    <folder>/sound.plugin.so\n"
            "lr_scheduler  acme/fragile  sound   1.0.0    <folder>/sound.plugin.so\n"
            "\n"
            "unusable here:\n"
            "  cannot read plugin file <folder>/text.plugin.so: it is not an ELF file\n"
            "  cannot use plugin 'wrong_torch' from <folder>/wrong_torch.plugin.so: built with "
            "torch 2.10.0 instead of " +
                std::string(host_manifest().field("torch")) + "\n");
}

TEST(Listing, SaysWhatEachComponentIsWithinAHundredColumns) {
  TemporaryFolder folder;
  fs::copy_file(plugin_file("sound"), folder.path() / "sound.plugin.so");
  fs::copy_file(plugin_folder("sound") / "more_flavors.plugin.so",
                folder.path() / "more_flavors.plugin.so");
  write(folder.path() / "plugins.txt",
        "# build: make\n"
        "# summary optimizer:acme/momentum: " +
            std::string(10, 'a') + " " + std::string(40, 'b') + " " + std::string(40, 'c') +
            "\nmomentum optimizer:acme/momentum optimizer:acme/nesterov\n");
  EXPECT_EQ(listing(Catalog({folder.path()}), "", Columns::summaries),
            "kind          name           what it is\n"
            "model         toy            Stands for a network.\n"
            "flavor        toy            broken, large, small\n"
            "optimizer     acme/momentum  aaaaaaaaaa " +
                std::string(40, 'b') + "\n" + std::string(29, ' ') + std::string(40, 'c') +
                " (not built)\n"
                "optimizer     acme/nesterov  (not built)\n"
                "lr_scheduler  Ramp           Grows with the step.\n"
                "lr_scheduler  acme/fragile   Fails on request; else a ramp.\n");
}

TEST(Listing, PointsAtNamesThatSeveralFilesProvide) {
  const std::string text = listing(Catalog({plugin_folder("twins")}), "", Columns::files);
  EXPECT_NE(
      text.find(
          "provided more than once, an error when selected:\n  lr_scheduler 'Constant'\n    " +
          (plugin_folder("twins") / "twin_a.plugin.so").string()),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace titan::core
