// A lock file: which plugin files may be loaded, and that each file is checked before it is opened.
#include "core/plugin/locked_files.h"

#include <gmock/gmock.h>

#include <titan/files/checksum.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

LockedPlugin a_row(const fs::path& folder) {
  return {.name = "sound",
          .version = "1.0.0",
          .file = "titan_plugins/sound.plugin.so",
          .sha256 = sha256_of_file(folder / "titan_plugins/sound.plugin.so"),
          .index = "https://example.org/titan",
          .key = "RWQdX1IUISD5jRq+9EhD/HOHieQiHmdrjafJHGWIfGDTeWlvSJSpO1RV"};
}

/// A folder with an installed plugin and job.lock.
class LockedFilesTest : public ::testing::Test {
 protected:
  LockedFilesTest() {
    fs::create_directory(folder_.path() / "titan_plugins");
    fs::copy_file(plugin_file("sound"), installed());
    write_lock(a_row(folder_.path()));
  }

  fs::path installed() const { return folder_.path() / "titan_plugins/sound.plugin.so"; }
  fs::path lock() const { return folder_.path() / "job.lock"; }
  void write_lock(const LockedPlugin& row) const { write_plugin_lock(lock(), {{row}}); }
  Catalog catalog(bool allows_others = false, std::vector<fs::path> folders = {}) const {
    return Catalog(std::move(folders), LockedFiles(lock(), allows_others));
  }
  std::string load_problem(const Catalog& catalog, const char* name = "Ramp") const {
    return plugin_error([&] { Registry(catalog).component("lr_scheduler", name); });
  }

  TemporaryFolder folder_;
};

TEST_F(LockedFilesTest, AListedFileIsFoundAndLoaded) {
  const Catalog found = catalog();
  Registry registry(found);
  EXPECT_EQ(registry.origin(registry.component("lr_scheduler", "Ramp")).file, installed());
  EXPECT_TRUE(registry.unlisted_plugins().empty());
  EXPECT_EQ(lock_file_of("a/job.toml"), fs::path("a/job.lock"));
}

TEST_F(LockedFilesTest, AChangedFileIsRefusedAtEachLoadEvenIfUnsignedOnesAreAllowed) {
  const Catalog before = catalog(true);
  std::ofstream(installed(), std::ios::binary | std::ios::app) << "x";
  for (const Catalog& found : {before, catalog(true)})
    EXPECT_THAT(load_problem(found), HasSubstr("not the one that was installed"));
}

TEST_F(LockedFilesTest, AnotherVersionOrNameThanListedIsRefused) {
  LockedPlugin row = a_row(folder_.path());
  row.version = "1.0.1";
  write_lock(row);
  EXPECT_THAT(load_problem(catalog()), HasSubstr("lists it as version 1.0.1"));
  row = a_row(folder_.path());
  row.name = "silent";
  write_lock(row);
  EXPECT_THAT(load_problem(catalog()), HasSubstr("of 'silent'"));
}

TEST_F(LockedFilesTest, AListedPluginOfAnotherSdkIsRefusedWithTheCommandForOneThatFits) {
  fs::remove(installed());
  fs::copy_file(plugin_file("wrong_sdk"), installed());
  LockedPlugin row = a_row(folder_.path());
  row.name = "wrong_sdk";
  write_lock(row);
  const std::string problem = load_problem(catalog(), "Constant");
  EXPECT_THAT(problem, HasSubstr("sdk_abi 0000000000000000 instead of"));
  EXPECT_THAT(problem, HasSubstr("titan plugin install wrong_sdk --lock " + lock().string()));
}

TEST_F(LockedFilesTest, APluginThatIsNotListedNeedsTheFlag) {
  const std::vector<fs::path> others = {plugin_folder("uses_optional")};
  const std::string problem = load_problem(catalog(false, others), "Constant");
  EXPECT_THAT(problem, HasSubstr("does not list it"));
  EXPECT_THAT(problem, HasSubstr("--plugins.allow_unsigned"));
  const Catalog allowed = catalog(true, others);
  Registry registry(allowed);
  registry.component("lr_scheduler", "Constant");
  EXPECT_EQ(registry.unlisted_plugins(), std::vector<std::string>{"uses_optional 1.0.0"});
}

TEST_F(LockedFilesTest, AMissingFileIsAnErrorWithTheCommandThatBringsIt) {
  fs::remove(installed());
  EXPECT_THAT(plugin_error([&] { catalog(); }),
              HasSubstr("titan plugin install --lock " + lock().string()));
}

TEST_F(LockedFilesTest, DamagedLockFilesAreNamed) {
  const std::string text = contents(lock());
  const auto problem = [&](const std::string& from, const std::string& to) -> std::string {
    write(lock(), replaced(text, from, to));
    try {
      catalog();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(problem("\"schema\": 1", "\"schema\": 2"), HasSubstr("has the schema 2"));
  EXPECT_THAT(problem("titan_plugins/", "../titan_plugins/"), HasSubstr("outside"));
  EXPECT_THAT(problem("titan_plugins/", "/titan_plugins/"), HasSubstr("outside"));
  EXPECT_THAT(problem("\"index\"", "\"indox\""), HasSubstr("needs the text 'index'"));
  EXPECT_THAT(problem("\"key\"", "\"more\": \"x\", \"key\""), HasSubstr("does not know"));
  EXPECT_THAT(problem("{", "["), HasSubstr(lock().string()));
}

}  // namespace
}  // namespace titan::core
