// Which differences between a plugin and the program are allowed.
#include "core/plugin/compatibility.h"

#include <map>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

Manifest manifest(std::map<std::string, std::string> changed = {}) {
  Manifest made;
  made.plugin = "acme_muon";
  made.fields = {{"sdk", "0.1.0"},
                 {"sdk_abi", "5d41402abc4b2a76"},
                 {"sdk_abi_torch_free", "0123456789abcdef"},
                 {"torch", "2.11.0"},
                 {"cxx11_abi", "1"},
                 {"compiler", "gcc 12"},
                 {"std", "20"},
                 {"arch", "x86_64"},
                 {"cuda", "13.0"},
                 {"cuda_archs", "none"},
                 {"sanitizer", "none"},
                 {"build_type", "Release"}};
  for (auto& [key, text] : made.fields)
    if (changed.count(key)) text = changed[key];
  return made;
}

bool fits(const std::map<std::string, std::string>& changed) {
  return is_compatible(differences(manifest(changed), manifest()));
}

TEST(Compatibility, AcceptsAnEqualManifest) {
  EXPECT_TRUE(differences(manifest(), manifest()).empty());
  EXPECT_NO_THROW(require_compatible(manifest(), manifest(), "acme.plugin.so"));
}

TEST(Compatibility, JudgesEachFieldByItsRule) {
  EXPECT_FALSE(fits({{"torch", "2.11.1"}}));
  EXPECT_FALSE(fits({{"torch", "2.10.0"}}));
  EXPECT_TRUE(fits({{"torch", "2.11.0+cpu"}}));
  EXPECT_TRUE(fits({{"torch", "none"}, {"sdk_abi", "0123456789abcdef"}}));
  EXPECT_FALSE(fits({{"torch", "none"}})) << "the hash of the headers with torch";
  EXPECT_FALSE(fits({{"sdk_abi", "0123456789abcdef"}})) << "the hash of the headers without torch";
  EXPECT_FALSE(fits({{"sdk_abi", "5d41402abc4b2a77"}}));
  EXPECT_TRUE(fits({{"sdk", "0.2.0"}}));
  EXPECT_FALSE(fits({{"cuda", "12.8"}}));
  EXPECT_TRUE(fits({{"cuda", "13.1"}}));
  EXPECT_TRUE(fits({{"cuda", "none"}}));
  EXPECT_FALSE(fits({{"compiler", "clang 12"}}));
  EXPECT_TRUE(fits({{"compiler", "gcc 13"}}));
  EXPECT_FALSE(fits({{"cxx11_abi", "0"}}));
  EXPECT_FALSE(fits({{"std", "23"}}));
  EXPECT_FALSE(fits({{"arch", "aarch64"}}));
  EXPECT_FALSE(fits({{"sanitizer", "address"}}));
  EXPECT_TRUE(fits({{"build_type", "Debug"}}));
  EXPECT_TRUE(fits({{"cuda_archs", "90"}}));
}

TEST(Compatibility, ComparesTheOptionalHeadersThatAPluginIncludes) {
  const auto with = [](const char* optional, std::vector<std::string> uses) {
    Manifest made = manifest();
    made.fields.emplace_back("sdk_optional", optional);
    made.uses = std::move(uses);
    return made;
  };
  const Manifest host = with("hf_config:aa hf_exchange:bb", {});
  EXPECT_TRUE(is_compatible(differences(manifest(), host)))
      << "built before optional headers existed";
  EXPECT_TRUE(is_compatible(differences(with("hf_config:00", {}), host))) << "does not include it";
  EXPECT_TRUE(is_compatible(differences(with("hf_exchange:bb", {"hf_exchange"}), host)));
  const auto changed =
      differences(with("hf_config:00 hf_exchange:bb", {"hf_config", "hf_exchange"}), host);
  EXPECT_EQ(summary(changed), "titan/hf_config.h 00 instead of aa");
  EXPECT_EQ(summary(differences(with("later:cc", {"later"}), host)),
            "titan/later.h cc instead of none");
  EXPECT_FALSE(is_compatible(differences(with("", {"later"}), host))) << "in no list";
}

TEST(Compatibility, APluginWithTorchDoesNotFitAProgramWithAnother) {
  EXPECT_FALSE(is_compatible(differences(manifest(), manifest({{"torch", "none"}}))));
  EXPECT_FALSE(is_compatible(differences(manifest(), manifest({{"cuda", "none"}}))));
}

TEST(Compatibility, ShowsEveryDifferenceInOneTable) {
  const Manifest plugin = manifest({{"torch", "2.10.0"}, {"cuda", "12.8"}, {"compiler", "gcc 13"}});
  const std::string report = plugin_error(
      [&] { require_compatible(plugin, manifest(), "./plugins/acme_muon.plugin.so"); });
  expect_golden("plugin_wrong_environment", report);
  EXPECT_EQ(summary(differences(plugin, manifest())),
            "torch 2.10.0 instead of 2.11.0, cuda 12.8 instead of 13.0");
}

}  // namespace
}  // namespace titan::core
