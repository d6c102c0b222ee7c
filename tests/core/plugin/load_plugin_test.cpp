// Opens and registers real plugin files: sound ones, and ones with one defect each.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>

#include "core/plugin/needed_libraries.h"
#include "core/plugin/plugin_check.h"
#include "core/plugin/registration.h"
#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

using std::chrono::minutes;

TEST(LoadPlugin, GivesWhatASoundPluginRegisters) {
  const auto plugin = load_plugin(plugin_file("sound"), read_manifest(plugin_file("sound")));
  ASSERT_EQ(plugin->registered.components().size(), 3u);
  EXPECT_EQ(plugin->registered.components()[0].name, "Ramp");
  EXPECT_EQ(plugin->registered.components()[2].abilities, std::vector<std::string>{"HfExchange"});
  ASSERT_EQ(plugin->registered.flavors().size(), 1u);
  EXPECT_EQ(plugin->file, plugin_file("sound").string());
}

TEST(LoadPlugin, TellsEachStepBeforeItBegins) {
  std::vector<std::string> steps;
  load_plugin(plugin_file("sound"), read_manifest(plugin_file("sound")),
              [&](const std::string& step) { steps.push_back(step); });
  EXPECT_EQ(steps, (std::vector<std::string>{
                       "its manifest was compared with this program",
                       "the libraries that it needs were looked for", "the library was opened",
                       "its components were registered", "its registrations were checked"}));
}

TEST(LoadPlugin, RefusesWhatWasBuiltForAnotherProgramWithoutOpeningIt) {
  expect_golden("plugin_wrong_torch",
                replaced(load_error(plugin_file("wrong_torch")),
                         std::string(host_manifest().field("torch")), "<torch>"));
  expect_golden("plugin_wrong_sdk", load_error(plugin_file("wrong_sdk")));
  EXPECT_EQ(::dlopen(plugin_file("wrong_torch").c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr);
  EXPECT_EQ(::dlopen(plugin_file("wrong_sdk").c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr);
}

TEST(LoadPlugin, LeavesAloneThoseThatDoWithoutAnOptionalHeader) {
  for (const char* name : {"uses_optional", "before_optional", "other_optional"})
    EXPECT_EQ(load_plugin(plugin_file(name), read_manifest(plugin_file(name)))
                  ->registered.components()
                  .size(),
              1u)
        << name;
}

TEST(LoadPlugin, RefusesThoseThatKnowAnotherOptionalHeaderWithoutOpeningThem) {
  const std::string changed = load_error(plugin_file("wrong_optional"));
  EXPECT_NE(changed.find("titan/hf_config.h  0000000000000000"), std::string::npos) << changed;
  EXPECT_NE(changed.find("must be equal"), std::string::npos) << changed;
  const std::string later = load_error(plugin_file("uses_newer"));
  EXPECT_NE(later.find("titan/next_year.h  none"), std::string::npos) << later;
  EXPECT_EQ(::dlopen(plugin_file("wrong_optional").c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr);
}

TEST(LoadPlugin, RefusesAWrongDoor) {
  expect_golden("plugin_no_entry", load_error(plugin_file("no_entry")));
  expect_golden("plugin_wrong_entry_size", load_error(plugin_file("wrong_entry_size")));
}

TEST(LoadPlugin, TurnsEveryExceptionOfRegisteringIntoAPluginError) {
  for (const std::string name :
       {"throws_exception", "throws_int", "throws_custom", "throws_titan_error"})
    expect_golden("plugin_" + name, load_error(plugin_file(name)));
}

TEST(LoadPlugin, HoldsAPluginToWhatItProvides) {
  expect_golden("plugin_provides_more", load_error(plugin_file("provides_more")));
  expect_golden("plugin_registers_more", load_error(plugin_file("registers_more")));
}

TEST(LoadPlugin, RefusesDefaultsThatTheirOwnConstraintsRefuse) {
  expect_golden("plugin_default_out_of_range", load_error(plugin_file("default_out_of_range")));
}

TEST(LoadPlugin, ExplainsWhatTheLoaderMisses) {
  expect_golden("plugin_undefined_symbol", load_error(plugin_file("undefined_symbol")));
  expect_golden("plugin_missing_library", load_error(plugin_file("missing_library")));
}

/// The error of loading a plugin into a process that already has a LibTorch. Runs in a child, so
/// that this process is not changed.
std::string report_beside_own_torch(const std::string& name) {
  return run_in_child(
             "the child failed",
             [&](const LoadProgress&) {
               const std::string own = (plugin_folder("own_torch") / "libtorch_cpu.so").string();
               TITAN_CHECK(::dlopen(own.c_str(), RTLD_NOW | RTLD_GLOBAL), io, ::dlerror());
               load_plugin(plugin_file(name), read_manifest(plugin_file(name)));
               return std::vector<std::string>();
             },
             minutes(10))
      .problem;
}

TEST(LoadPlugin, RefusesASecondLibTorch) {
  expect_golden("plugin_second_torch", report_beside_own_torch("second_torch"));
  expect_golden("plugin_second_torch_behind", report_beside_own_torch("second_torch_behind"));
  EXPECT_EQ(report_beside_own_torch("sound"), "");
}

TEST(NeededLibraries, TakeTheProgramsOwnLibTorchForWhatItIs) {
  const auto second = plugin_folder("second_torch") / "libtorch_cpu.so";
  EXPECT_EQ(second_torch_problem(plugin_file("second_torch"), {second}), "");
  EXPECT_EQ(second_torch_problem(plugin_file("second_torch_behind"), {second}), "");
  EXPECT_EQ(second_torch_problem(plugin_file("second_torch"), {"/usr/lib/libz.so"}), "");
  EXPECT_NE(second_torch_problem(plugin_file("second_torch"), {"/elsewhere/libc10.so"}), "");
}

TEST(NeededLibraries, NameThisProcessesOwn) {
  const auto loaded = loaded_libraries();
  EXPECT_TRUE(std::any_of(loaded.begin(), loaded.end(), [](const std::filesystem::path& library) {
    return library.filename() == "libtitan_base.so";
  }));
}

}  // namespace
}  // namespace titan::core
