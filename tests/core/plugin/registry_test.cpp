// Components by name: lookup, refusal and creation.
#include "core/plugin/registry.h"

#include <dlfcn.h>

#include <titan/lr_scheduler.h>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

/// A catalog of some folders of tests/bad_plugins, and a registry that uses it.
struct Host {
  explicit Host(std::vector<std::filesystem::path> folders)
      : catalog(std::move(folders)), registry(catalog) {}
  Catalog catalog;
  Registry registry;
};

TEST(Registry, OpensTheOnePluginThatProvidesTheName) {
  Host host({plugin_folder("sound"), plugin_folder("foreign_flavor"), plugin_folder("twins")});
  const Component& ramp = host.registry.component("lr_scheduler", "Ramp");
  EXPECT_EQ(ramp.name, "Ramp");
  EXPECT_EQ(&ramp, &host.registry.component("lr_scheduler", "Ramp"));
  EXPECT_EQ(host.registry.component("lr_scheduler", "acme/fragile").help, "Fails on request; else a ramp.");
  EXPECT_EQ(host.registry.origin(ramp).plugin, "sound");
  EXPECT_EQ(host.registry.origin(ramp).version, "1.0.0");
  EXPECT_EQ(host.registry.origin(ramp).file, plugin_file("sound").string());
  for (const char* other : {"twin_a", "twin_b"})
    EXPECT_EQ(::dlopen((plugin_folder("twins") / (std::string(other) + ".plugin.so")).c_str(),
                       RTLD_NOLOAD | RTLD_NOW),
              nullptr)
        << other << " was opened although the job does not use it";
}

TEST(Registry, MakesComponentsFromCheckedOptions) {
  Host host({plugin_folder("sound")});
  const auto ramp =
      host.registry.create<LrScheduler>("Ramp", Value::map({{"start", 0.5}, {"steps", 4}}), {});
  EXPECT_EQ(ramp->factor(2), 1.0);
  EXPECT_EQ(host.registry.create<LrScheduler>("Ramp", Value(), {})->factor(50), 0.5);
}

TEST(Registry, SaysWhichComponentCouldNotBeMade) {
  Host host({plugin_folder("sound")});
  const auto made = [&](const char* failure) {
    host.registry.create<LrScheduler>("acme/fragile", Value::map({{"failure", failure}}), {});
  };
  EXPECT_NO_THROW(made("none"));
  expect_golden("plugin_constructor_exception", plugin_error([&] { made("standard"); }));
  expect_golden("plugin_constructor_int", plugin_error([&] { made("integer"); }));
  try {
    made("data");
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    expect_golden("plugin_constructor_error", e.what());
  }
}

TEST(Registry, NamesTheNearestAndTheSearchTrailForAnUnknownName) {
  TemporaryFolder folder;
  Host host({plugin_folder("sound"), folder.path() / "absent"});
  const auto unknown = [&](const char* kind, const char* name) {
    return plugin_error([&] { host.registry.component(kind, name); });
  };
  expect_golden("plugin_not_found", unknown("lr_scheduler", "Rmap"), folder.path());
  expect_golden("plugin_none_of_kind", unknown("dataset", "c4"), folder.path());
  expect_golden("plugin_unknown_kind", unknown("optimiser", "AdamW"), folder.path());
}

TEST(Registry, RefusesANameThatTwoFilesProvide) {
  Host host({plugin_folder("twins")});
  expect_golden("plugin_two_files",
                plugin_error([&] { host.registry.component("lr_scheduler", "Constant"); }));
}

TEST(Registry, EndsTheSearchWithTheErrorOfTheFileThatWasFound) {
  for (const std::string name : {"wrong_torch", "throws_int", "undefined_symbol"}) {
    Host host({plugin_folder(name), plugin_folder("sound")});
    EXPECT_EQ(plugin_error([&] { host.registry.component("lr_scheduler", "Constant"); }),
              load_error(plugin_file(name)));
    EXPECT_NO_THROW(host.registry.component("lr_scheduler", "Ramp"));
  }
}

TEST(Registry, FindsFlavorsOfAModelInOtherPlugins) {
  Host host({plugin_folder("sound")});
  EXPECT_EQ(host.registry.flavor("toy", "small").preset, Value::map({{"dim", 8}, {"layers", 1}}));
  EXPECT_EQ(host.registry.flavor("toy", "large").preset, Value::map({{"dim", 4096}}));
}

TEST(Registry, RefusesFlavorsThatAreUnknownOrDoNotFitTheModel) {
  Host host({plugin_folder("sound"), plugin_folder("foreign_flavor")});
  const auto refusal = [&](const char* model, const char* name) {
    return plugin_error([&] { host.registry.flavor(model, name); });
  };
  expect_golden("plugin_flavor_preset", refusal("toy", "broken"));
  expect_golden("plugin_flavor_not_found", refusal("toy", "smal"));
  expect_golden("plugin_flavor_without_model", refusal("nowhere", "tiny"));
}

}  // namespace
}  // namespace titan::core
