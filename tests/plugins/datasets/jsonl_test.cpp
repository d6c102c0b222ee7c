// The jsonl dataset: its documents, plain and compressed, its positions to resume from, and its
// errors for bad input.
#include "plugins/datasets/jsonl/jsonl_dataset.h"

#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/datasets/common/byte_reader.h"
#include "tests/plugins/datasets/files_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::gzip_member;
using titan::testing::holds;
using titan::testing::json_lines;
using titan::testing::rest_of;
using titan::testing::TestFolder;
using titan::testing::Texts;
using titan::testing::texts_of;
using titan::testing::zstd_frame;

JsonlDataset open_jsonl(const std::string& path, const JsonLinesOptions& options = {}) {
  return JsonlDataset(options, {.path = path});
}

TEST(JsonlDataset, ReadsTheFieldAndNothingElse) {
  TestFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      R"({"text":"one","text2":"x","nested":{"text":"no"},"list":[{"text":"no"},1.5,true,null]})"
      "\n"
      R"({"id":1,"text":"t\u00e4\n\ud83d\ude00 \"q\""})"
      "\n"
      R"({"text":"","body":"b"})"
      "\n");
  EXPECT_EQ(texts_of(open_jsonl(path)), (Texts{"one", "t\u00e4\n\U0001F600 \"q\"", ""}));
}

TEST(JsonlDataset, ReadsAnotherFieldWhenAsked) {
  TestFolder folder;
  const std::string path = folder.write("a.jsonl", R"({"text":1,"body":"b"})");
  EXPECT_EQ(texts_of(open_jsonl(path, {.field = "body"})), Texts{"b"});
}

TEST(JsonlDataset, ToleratesByteOrderMarkBlankLinesAndAMissingLastNewline) {
  TestFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      "\xEF\xBB\xBF\n \t\r\n{\"text\":\"a\"}\r\n\n\n  {\"text\":\"b\"}  \n\r\n{\"text\":\"c\"}");
  const JsonlDataset dataset = open_jsonl(path);
  ASSERT_NE(dataset.indexed(), nullptr);
  EXPECT_EQ(dataset.streamed(), nullptr);
  EXPECT_EQ(dataset.indexed()->size(), 3);
  EXPECT_EQ(dataset.indexed()->place(1), "a.jsonl:6");
  EXPECT_EQ(texts_of(dataset), (Texts{"a", "b", "c"}));
}

TEST(JsonlDataset, ReadsTheFilesOfAFolderInTheOrderOfTheirNames) {
  TestFolder folder;
  Texts all;
  for (int i = 0; i < 11; ++i) all.push_back("document " + std::to_string(i));
  folder.write("b/1.jsonl", json_lines({all.begin(), all.begin() + 4}));
  folder.write("b/2.jsonl", "\n");
  folder.write("b/3.json", json_lines({all.begin() + 4, all.end()}));
  folder.write("b/notes.txt", "not part of it");
  const JsonlDataset dataset = open_jsonl(folder.at("b"));
  EXPECT_EQ(texts_of(dataset), all);
  EXPECT_EQ(dataset.indexed()->place(3), "1.jsonl:4");
  EXPECT_EQ(dataset.indexed()->place(4), "3.json:1");

  const JsonlDataset streamed = open_jsonl(folder.at("b"), {.index = false});
  EXPECT_EQ(streamed.streamed()->num_shards(), 3);
  EXPECT_EQ(texts_of(streamed), all);
}

TEST(JsonlDataset, StreamsAllFilesWhenOneIsCompressed) {
  TestFolder folder;
  folder.write("x/1.jsonl.gz",
               gzip_member(json_lines({"a", "b"})) + gzip_member(json_lines({"c"})));
  folder.write("x/2.jsonl", json_lines({"d"}));
  folder.write("x/3.json.zst", zstd_frame(json_lines({"e"})) + zstd_frame(json_lines({"f"})));
  folder.write("x/4.json.gz", gzip_member(""));
  const JsonlDataset dataset = open_jsonl(folder.at("x"));
  EXPECT_EQ(dataset.indexed(), nullptr);
  ASSERT_NE(dataset.streamed(), nullptr);
  EXPECT_EQ(dataset.streamed()->num_shards(), 4);
  EXPECT_EQ(texts_of(dataset), (Texts{"a", "b", "c", "d", "e", "f"}));
}

TEST(JsonlDataset, ContinuesExactlyWhereItsPositionWasTaken) {
  // random contents, kill points and formats, with documents read and skipped in between
  std::mt19937 random(1);
  TestFolder folder;
  for (int round = 0; round < 60; ++round) {
    std::string content = random() % 2 ? "\xEF\xBB\xBF" : "";
    Texts all;
    for (unsigned i = 0, count = 1 + random() % 20; i < count; ++i) {
      all.push_back(std::to_string(i) + std::string(random() % 3 ? 5 : 40000, 'x'));
      content += json_lines({all.back()});
      if (random() % 4 == 0) content.insert(content.size() - 1, "\r");
      while (random() % 4 == 0) content += random() % 2 ? "\n" : " \r\n";
    }
    if (random() % 2) content.erase(content.find_last_not_of(" \r\n") + 1);
    const size_t cut = random() % content.size();  // between two members, anywhere in a line
    const std::string head = content.substr(0, cut), tail = content.substr(cut);
    for (const std::string& path :
         {folder.write("a.jsonl", content),
          folder.write("a.jsonl.gz", gzip_member(head) + gzip_member(tail)),
          folder.write("a.jsonl.zst", zstd_frame(head) + zstd_frame(tail))}) {
      const JsonlDataset dataset = open_jsonl(path, {.index = false});
      const auto stream = dataset.streamed()->open(0);
      const size_t num_read = random() % (all.size() + 1);
      Document document;
      for (size_t i = 0; i < num_read; ++i) {
        if (random() % 2) {
          ASSERT_TRUE(stream->skip());
        } else {
          ASSERT_TRUE(stream->next(document));
          ASSERT_EQ(document.text, all[i]);
        }
      }
      const Value position = parse_json(to_json(stream->position()));  // as a checkpoint stores it
      const std::string place = stream->place();
      const JsonlDataset later = open_jsonl(path, {.index = false});
      const auto resumed = later.streamed()->open(0);
      if (random() % 2) resumed->next(document);
      resumed->seek(position);
      EXPECT_EQ(resumed->position(), position);
      const size_t num_lines = static_cast<size_t>(position.at("lines").as_integer());
      EXPECT_TRUE(num_read == 0 || holds(place, ":" + std::to_string(num_lines)));
      const Texts wanted(all.begin() + static_cast<ptrdiff_t>(num_read), all.end());
      ASSERT_EQ(rest_of(*resumed), wanted) << path << " " << to_json(position);
      ASSERT_EQ(rest_of(*stream), wanted);
      EXPECT_FALSE(resumed->skip());
      EXPECT_EQ(resumed->position(), stream->position());
      resumed->seek(stream->position());  // the end is a valid position too
      EXPECT_FALSE(resumed->next(document));
    }
  }
}

TEST(JsonlDataset, TakesAGlob) {
  TestFolder folder;
  folder.write("x/c4.1.json", json_lines({"b"}));
  folder.write("x/c4.0.json", json_lines({"a"}));
  folder.write("x/other.json", json_lines({"no"}));
  folder.write("y/c4.0.json", json_lines({"c"}));
  EXPECT_EQ(texts_of(open_jsonl(folder.at("*/c4.*.json"))), (Texts{"a", "b", "c"}));
  const Error error = error_of([&] { open_jsonl(folder.at("*/d4.*")); });
  EXPECT_TRUE(holds(error.what(), "no file matches data set path"));
}

TEST(JsonlDataset, AFileWhoseNameIsAGlobIsItself) {
  TestFolder folder;
  EXPECT_EQ(texts_of(open_jsonl(folder.write("a[1].jsonl", json_lines({"a"})))), Texts{"a"});
}

TEST(JsonlDataset, FingerprintTellsContentsApartButNotPlaces) {
  TestFolder folder;
  folder.write("a/1.jsonl", json_lines({"one", "two"}));
  folder.write("moved/1.jsonl", json_lines({"one", "two"}));
  folder.write("renamed/2.jsonl", json_lines({"one", "two"}));
  folder.write("longer/1.jsonl", json_lines({"one", "three"}));
  folder.write("joined/1.jsonl", json_lines({std::string("one") + std::string(15, 'x')}));
  const std::string fingerprint = open_jsonl(folder.at("a")).fingerprint();
  EXPECT_EQ(fingerprint.size(), 32U);
  EXPECT_EQ(open_jsonl(folder.at("moved")).fingerprint(), fingerprint);
  EXPECT_EQ(open_jsonl(folder.at("moved/1.jsonl")).fingerprint(), fingerprint);
  EXPECT_EQ(open_jsonl(folder.at("a/*.jsonl")).fingerprint(), fingerprint);
  ASSERT_EQ(std::filesystem::file_size(folder.at("joined/1.jsonl")),
            std::filesystem::file_size(folder.at("a/1.jsonl")));
  for (const char* other : {"renamed", "longer", "joined"})
    EXPECT_NE(open_jsonl(folder.at(other)).fingerprint(), fingerprint) << other;
  EXPECT_NE(open_jsonl(folder.at("a"), {.index = false}).fingerprint(), fingerprint);
  EXPECT_NE(open_jsonl(folder.at("a"), {.skip_bad_lines = true}).fingerprint(), fingerprint);
  EXPECT_EQ(open_jsonl(folder.at("a"), {.index = false}).fingerprint(),
            open_jsonl(folder.at("moved"), {.index = false}).fingerprint());
}

TEST(JsonlDataset, MayBeReadByAnyNumberOfThreads) {
  TestFolder folder;
  Texts all;
  for (int i = 0; i < 2000; ++i) all.push_back(std::to_string(i));
  const size_t per_file = 20;  // more files than may be open at once
  for (size_t i = 0; i < all.size(); i += per_file) {
    const auto first = all.begin() + static_cast<ptrdiff_t>(i);
    folder.write("x/" + std::to_string(10000 + i) + ".jsonl",
                 json_lines({first, first + per_file}));
  }
  const JsonlDataset dataset = open_jsonl(folder.at("x"));
  ASSERT_EQ(dataset.indexed()->size(), 2000);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      Document document;
      for (int i = 0; i < 2000; ++i) {
        const size_t wanted = random() % all.size();
        dataset.indexed()->read(static_cast<int64_t>(wanted), document);
        EXPECT_EQ(document.text, all[wanted]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(JsonlDataset, ReadsAVeryLongLine) {
  TestFolder folder;
  const std::string text(100 << 20, 'x');
  const std::string line = "{\"text\":\"" + text + "\"}\n";
  EXPECT_EQ(texts_of(open_jsonl(
                folder.write("a.jsonl", json_lines({"short"}) + line + json_lines({"end"})))),
            (Texts{"short", text, "end"}));
}

TEST(JsonlDataset, NoticesThatAFileChangedUnderIt) {
  TestFolder folder;
  const std::string path = folder.write("a.jsonl", json_lines({"a", "b"}));
  const JsonlDataset dataset = open_jsonl(path), streamed = open_jsonl(path, {.index = false});
  Document document;
  dataset.indexed()->read(0, document);
  std::filesystem::resize_file(path, 20);
  EXPECT_TRUE(holds(error_of([&] { dataset.indexed()->read(1, document); }).what(),
                    "has become shorter than"));
  EXPECT_TRUE(holds(error_of([&] { streamed.streamed()->open(0); }).what(),
                    "has changed from 26 to 20 bytes"));
}

}  // namespace
}  // namespace titan::datasets
