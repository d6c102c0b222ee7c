// The text of plugin manifests: accepted and refused forms.
#include "core/plugin/manifest.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Fields good_fields() {
  return {{"manifest", "1"},         {"plugin", "acme"},
          {"version", "2.3.4"},      {"provides", "optimizer:acme/muon flavor:m/8B"},
          {"sdk", "0.1.0"},          {"sdk_abi", "00"},
          {"torch", "none"},         {"cxx11_abi", "1"},
          {"compiler", "gcc 12"},    {"std", "20"},
          {"arch", "x86_64"},        {"cuda", "none"},
          {"cuda_archs", "none"},    {"sanitizer", "none"},
          {"build_type", "Release"}, {"built_by", "acme"}};
}

std::string joined(const Fields& fields) {
  std::string bytes;
  for (const auto& [key, text] : fields) bytes += key + "=" + text + '\0';
  return bytes;
}

std::string with(const std::string& key, const std::string& text) {
  Fields fields = good_fields();
  for (auto& [name, value] : fields)
    if (name == key) value = text;
  return joined(fields);
}

// the format of version 0.1 stays readable forever
TEST(Manifest, OfVersion0_1IsRead) {
  std::ifstream file(TITAN_TEST_SOURCE_DIR "/assets/v0.1/adamw.manifest", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Manifest manifest = parse_manifest(bytes, "adamw.manifest");
  EXPECT_EQ(manifest.plugin, "adamw");
  EXPECT_EQ(manifest.version, "1.1.0");
  EXPECT_EQ(manifest.provides,
            (std::vector<Provided>{{"optimizer", "AdamW"}, {"optimizer", "Adam"}}));
  EXPECT_EQ(manifest.field("sdk_abi"), "7215c6082dd75fb4");
  EXPECT_EQ(manifest.field("torch"), "2.11.0");
  EXPECT_EQ(manifest.optional_hash("fused_head"), "df3d86df4d7866b1");
}

std::string refusal(const std::string& bytes) {
  return plugin_error([&] { parse_manifest(bytes, "acme.plugin.so"); });
}

TEST(Manifest, GivesEveryFieldAsWritten) {
  const Manifest manifest = parse_manifest(joined(good_fields()), "acme.plugin.so");
  EXPECT_EQ(manifest.fields, good_fields());
  EXPECT_EQ(manifest.plugin, "acme");
  EXPECT_EQ(manifest.version, "2.3.4");
  EXPECT_EQ(manifest.provides,
            (std::vector<Provided>{{"optimizer", "acme/muon"}, {"flavor", "m/8B"}}));
  EXPECT_EQ(manifest.field("compiler"), "gcc 12");
  EXPECT_EQ(manifest.field("git"), "");
}

TEST(Manifest, ReadsWhatTitanAddPluginEmbeds) {
  const Manifest manifest = read_manifest(plugin_file("sound"));
  EXPECT_EQ(manifest.plugin, "sound");
  EXPECT_EQ(manifest.version, "1.0.0");
  EXPECT_EQ(manifest.field("torch"), "none");
  EXPECT_EQ(manifest.field("sdk_abi"), host_manifest().field("sdk_abi_torch_free"));
  EXPECT_EQ(manifest.provides, (std::vector<Provided>{{"lr_scheduler", "Ramp"},
                                                      {"lr_scheduler", "acme/fragile"},
                                                      {"model", "toy"},
                                                      {"flavor", "toy/small"}}));
  EXPECT_EQ(manifest.summary("lr_scheduler", "acme/fragile"), "Fails on request; else a ramp.");
  EXPECT_EQ(manifest.summary("lr_scheduler", "none"), "");
}

TEST(Manifest, OfThisProgramHasTheSameKeys) {
  const Manifest plugin = read_manifest(plugin_file("sound"));
  const size_t num_shared = host_manifest().fields.size();
  ASSERT_GE(plugin.fields.size(), num_shared);
  for (size_t i = 0; i < num_shared; ++i)
    EXPECT_EQ(plugin.fields[i].first, host_manifest().fields[i].first);
  for (size_t i = num_shared; i < plugin.fields.size(); ++i)
    EXPECT_TRUE(plugin.fields[i].first.starts_with("summary:")) << plugin.fields[i].first;
  EXPECT_TRUE(host_manifest().provides.empty());
}

TEST(Manifest, NeedsNoZeroAtTheEndAndSkipsPadding) {
  std::string bytes = joined(good_fields());
  bytes.pop_back();
  EXPECT_EQ(parse_manifest(bytes, "x").fields, good_fields());
  EXPECT_EQ(parse_manifest(joined(good_fields()) + std::string(7, '\0'), "x").fields,
            good_fields());
}

TEST(Manifest, RefusesWhatIsNoManifest) {
  expect_golden("plugin_manifest_version", refusal(with("manifest", "2")));
  expect_golden("plugin_manifest_not_text", refusal(with("plugin", "ac\x01me")));
  expect_golden("plugin_manifest_not_fields", refusal(joined(good_fields()) + "forty-two"));
  expect_golden("plugin_manifest_missing_keys",
                refusal(std::string("manifest=1\0plugin=acme\0version=1\0", 33)));
  expect_golden("plugin_manifest_twice", refusal(joined(good_fields()) + "torch=2.11.0"));
  expect_golden("plugin_manifest_provides", refusal(with("provides", "optimizer")));
  expect_golden("plugin_manifest_provides_twice",
                refusal(with("provides", "optimizer:a optimizer:a")));
  expect_golden("plugin_manifest_flavor", refusal(with("provides", "flavor:8B")));
  EXPECT_NE(refusal(with("git", "") + std::string(1 << 17, 'x')).find("the limit is 65536"),
            std::string::npos);
  EXPECT_NE(refusal("").find("lacks: manifest, plugin"), std::string::npos);
}

}  // namespace
}  // namespace titan::core
