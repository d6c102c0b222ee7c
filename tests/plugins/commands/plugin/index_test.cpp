// The text of an index: what is read is what was written, and names cannot lead out of a folder.
#include "plugins/commands/plugin/index.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "tests/plugins/error_of.h"

namespace titan::plugin_index {
namespace {

using ::testing::HasSubstr;
using titan::testing::error_of;

const std::string kIndexKey = "RWQdX1IUISD5jRq+9EhD/HOHieQiHmdrjafJHGWIfGDTeWlvSJSpO1RV";

Value a_manifest() {
  return Value::map({{"plugin", "signsgd"},
                     {"version", "1.0.0"},
                     {"provides", "optimizer:acme/signsgd optimizer:acme/other"},
                     {"summary:optimizer:acme/signsgd", "The sign of the gradient."},
                     {"sdk", "0.2.0"},
                     {"sdk_abi", "00aa"},
                     {"torch", "2.15.0"},
                     {"cuda", "13.2"},
                     {"compiler", "gcc 12"},
                     {"std", "20"},
                     {"cxx11_abi", "1"},
                     {"arch", "x86_64"},
                     {"sanitizer", "none"},
                     {"build_type", "Release"},
                     {"sdk_optional", "engine:11 watcher:22 chat:33"},
                     {"uses", Value::list({"engine", "chat"})}});
}

Index an_index() {
  PluginBuild build = described_build(a_manifest());
  build.url = "signsgd/signsgd-1.0.0.plugin.so";
  build.sha256 = std::string(64, 'a');
  build.size = 1234;
  build.signature = "four\nlines\n";
  build.conformance = Value::map({{"passed", 12}});
  return {.name = "acme",
          .counter = 7,
          .expires = 1'800'000'000,
          .keys = {parse_public_key(kIndexKey, "key")},
          .plugins = {{.name = "signsgd", .builds = {build}}}};
}

/// The error when `text` in the index is replaced.
std::string index_problem(const std::string& text, const std::string& by) {
  std::string content = to_text(an_index());
  const size_t found = content.find(text);
  EXPECT_NE(found, std::string::npos) << text;
  content.replace(found, text.size(), by);
  return error_of([&] { parse_index(content, "the index"); }).message();
}

TEST(PluginIndexText, ReadsWhatItWrote) {
  const std::string text = to_text(an_index());
  const Index index = parse_index(text, "the index");
  EXPECT_EQ(to_text(index), text);
  EXPECT_EQ(index.expires, 1'800'000'000);
  ASSERT_TRUE(index.find("signsgd"));
  EXPECT_FALSE(index.find("SignSgd"));
  EXPECT_EQ(index.find("signsgd")->builds[0].built_for, an_index().plugins[0].builds[0].built_for);
  EXPECT_EQ(comment_of(index), "titan-index name=acme counter=7");
  EXPECT_EQ(comment_of("signsgd", index.plugins[0].builds[0]),
            "titan-plugin name=signsgd version=1.0.0 sdk_abi=00aa torch=2.15.0 arch=x86_64");
}

TEST(PluginIndexText, KeepsTheHashesOfIncludedHeadersOnly) {
  const PluginBuild build = described_build(a_manifest());
  EXPECT_EQ(build.built_for.at("sdk_optional").as_string(), "engine:11 chat:33");
  EXPECT_EQ(build.summary, "The sign of the gradient.");
  EXPECT_EQ(build.provides.size(), 2u);
}

TEST(PluginIndexText, NamesTheWrongMember) {
  EXPECT_THAT(index_problem("\"schema\": 1", "\"schema\": 2"), HasSubstr("has the schema 2"));
  EXPECT_THAT(index_problem("\"counter\": 7", "\"counter\": 0"), HasSubstr("counter = 0"));
  EXPECT_THAT(index_problem("\"counter\": 7", "\"counter\": \"7\""),
              HasSubstr("no integer 'counter'"));
  EXPECT_THAT(index_problem("\"size\": 1234", "\"size\": -1"),
              HasSubstr("plugin 'signsgd', version 1"));
  EXPECT_THAT(index_problem("\"torch\"", "\"tarch\""), HasSubstr("no text 'torch'"));
  EXPECT_THAT(index_problem(std::string(64, 'a'), std::string(63, 'a')),
              HasSubstr("64 hexadecimal"));
  EXPECT_THAT(index_problem(kIndexKey, "RW"), HasSubstr("not a public key of minisign"));
}

TEST(PluginIndexText, RefusesNamesAndAddressesThatLeadElsewhere) {
  for (const char* name : {"..", ".x", "a/b", "", "-S", "a b", "a\\u0000b", "\\u00e9"})
    EXPECT_THAT(index_problem("\"name\": \"signsgd\"", "\"name\": \"" + std::string(name) + "\""),
                HasSubstr("must be letters"))
        << name;
  EXPECT_THAT(index_problem("\"version\": \"1.0.0\"", "\"version\": \"../1\""),
              HasSubstr("has the version"));
  for (const char* url :
       {"../x.so", "/etc/passwd", "a//b", "a/./b", "a/../../b", "file:///etc/passwd", "ftp://x/y",
        "a\\\\b", "a%2f..%2fb", "a?b", "", "x y"})
    EXPECT_THAT(index_problem("signsgd/signsgd-1.0.0.plugin.so", url), HasSubstr("has the url"))
        << url;
}

TEST(PluginIndexText, ComparesVersionsByTheirNumbers) {
  EXPECT_TRUE(is_older("1.2.0", "1.10.0"));
  EXPECT_FALSE(is_older("1.10.0", "1.2.0"));
  EXPECT_TRUE(is_older("1.2", "1.2.1"));
  EXPECT_FALSE(is_older("1.2", "1.2"));
  EXPECT_TRUE(is_older("1.0.0-a", "1.0.0-b"));
}

}  // namespace
}  // namespace titan::plugin_index
