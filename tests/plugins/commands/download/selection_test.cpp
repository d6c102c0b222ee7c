#include "plugins/commands/download/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "plugins/commands/download/listing.h"

namespace titan::download {
namespace {

using ::testing::ElementsAre;

std::vector<RemoteFile> repo_of(const std::vector<std::string>& paths) {
  std::vector<RemoteFile> files;
  for (const std::string& path : paths)
    files.push_back({.path = path, .size = 1, .expected = std::string(64, '0')});
  return files;
}

std::vector<std::string> chosen(const std::vector<std::string>& paths, const Selection& selection) {
  std::vector<std::string> result;
  for (const RemoteFile& file : choose(repo_of(paths), selection, "acme/x"))
    result.push_back(file.path);
  return result;
}

Selection selection(Wanted wanted, std::vector<std::string> include = {},
                    std::vector<std::string> exclude = {}) {
  return {.wanted = wanted, .include = std::move(include), .exclude = std::move(exclude)};
}

const std::vector<std::string> kRepo = {"README.md",
                                        "config.json",
                                        "model-1.safetensors",
                                        "model.safetensors.index.json",
                                        "original/tokenizer.model",
                                        "pytorch_model.bin",
                                        "tokenizer.json",
                                        "vocab.txt",
                                        "my_tokenizer.json"};

TEST(Selection, KnowsTokenizersAndModelsByTheirFiles) {
  EXPECT_THAT(chosen(kRepo, selection(Wanted::tokenizer)),
              ElementsAre("original/tokenizer.model", "tokenizer.json", "vocab.txt"));
  EXPECT_THAT(chosen(kRepo, selection(Wanted::model)),
              ElementsAre("config.json", "model-1.safetensors", "model.safetensors.index.json",
                          "original/tokenizer.model", "tokenizer.json", "vocab.txt"));
  EXPECT_EQ(chosen(kRepo, selection(Wanted::dataset)), kRepo);
}

TEST(Selection, IncludeReplacesTheUsualFilesAndExcludeTakesAway) {
  EXPECT_THAT(chosen(kRepo, selection(Wanted::tokenizer, {"*.md", "orig*"})),
              ElementsAre("README.md", "original/tokenizer.model"));
  EXPECT_THAT(chosen(kRepo, selection(Wanted::model, {}, {"original/", "*.json"})),
              ElementsAre("model-1.safetensors", "vocab.txt"));
}

TEST(Selection, OfNothingIsAnError) {
  EXPECT_THROW(chosen(kRepo, selection(Wanted::model, {"*.md", "*.gguf"})), Error);
  EXPECT_THROW(chosen({"README.md"}, selection(Wanted::model)), Error);
  EXPECT_THROW(chosen({}, selection(Wanted::dataset)), Error);
}

TEST(Selection, JudgesTheNamesThatItTakes) {
  EXPECT_THROW(chosen({"a", "../b"}, selection(Wanted::dataset)), Error);
  EXPECT_THAT(chosen({"a", "../b"}, selection(Wanted::dataset, {}, {"../*"})), ElementsAre("a"));
  EXPECT_THROW(chosen({"a", "a"}, selection(Wanted::dataset)), Error);
  EXPECT_THROW(chosen({"a", "a.part"}, selection(Wanted::dataset)), Error);
  EXPECT_THROW(chosen({"a.part.json", "a"}, selection(Wanted::dataset)), Error);
}

TEST(ListOfFiles, TellsLargeFilesFromThoseOfGit) {
  const std::string sha1(40, 'a'), sha256(64, 'b');
  const std::vector<RemoteFile> files = parse_page(
      R"([{"type":"directory","oid":"x","size":0,"path":"d"},
          {"type":"file","oid":")" +
          sha1 + R"(","size":7,"path":"d/s"},
          {"type":"file","oid":")" +
          sha1 + R"(","size":134,"path":"l",
           "lfs":{"oid":")" +
          sha256 + R"(","size":5000000000,"pointerSize":134}}])",
      "url");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "d/s");
  EXPECT_EQ(files[0].size, 7);
  EXPECT_EQ(files[0].checksum, Checksum::git_blob);
  EXPECT_EQ(files[0].expected, sha1);
  EXPECT_EQ(files[1].size, 5000000000);
  EXPECT_EQ(files[1].checksum, Checksum::sha256);
  EXPECT_EQ(files[1].expected, sha256);
}

TEST(ListOfFiles, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[1]", "null", "<html>", R"([{"type":"file"}])",
                           R"([{"type":"file","path":"a","size":1,"oid":"short"}])",
                           R"([{"type":"file","path":"a","size":1.5,"oid":"aaaa"}])",
                           R"([{"type":"file","path":"a","size":1,"lfs":7,"oid":"a"}])"})
    EXPECT_THROW(parse_page(text, "url"), Error) << text;
}

}  // namespace
}  // namespace titan::download
