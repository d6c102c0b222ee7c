// The jsonl dataset: which documents the rows read, where they continue, and what is said about bad
// input.
#include "plugins/datasets/jsonl/jsonl_dataset.h"

#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plugins/datasets/jsonl/line_index.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;
using namespace std::string_literals;

using Texts = std::vector<std::string>;

JsonlDataset open(const std::string& path, const std::string& field = "text") {
  return JsonlDataset({.field = field}, {.path = path});
}

/// What is left of the epoch.
Texts rest_of(DocumentStream& stream) {
  Texts texts;
  for (Document document; stream.next(document);) {
    EXPECT_FALSE(document.is_tokenised);
    texts.push_back(document.text);
  }
  return texts;
}

Texts texts_of(const JsonlDataset& dataset, int64_t row = 0, int64_t num_rows = 1) {
  return rest_of(*dataset.open({.row = row, .num_rows = num_rows}));
}

std::string lines(const Texts& texts) {
  std::string content;
  for (const std::string& text : texts) content += nlohmann::json({{"text", text}}).dump() + "\n";
  return content;
}

/// The Error of reading all documents of a file with this content.
Error error_in(const std::string& content, const std::string& field = "text") {
  TestFolder folder;
  const std::string path = folder.write("bad.jsonl", content);
  return error_of([&] { texts_of(open(path, field)); });
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
  EXPECT_EQ(texts_of(open(path)), (Texts{"one", "t\u00e4\n\U0001F600 \"q\"", ""}));
  EXPECT_EQ(texts_of(open(path, "text")).size(), 3U);
}

TEST(JsonlDataset, ReadsAnotherFieldWhenAsked) {
  TestFolder folder;
  const std::string path = folder.write("a.jsonl", R"({"text":1,"body":"b"})");
  EXPECT_EQ(texts_of(open(path, "body")), Texts{"b"});
}

TEST(JsonlDataset, ToleratesByteOrderMarkBlankLinesAndAMissingLastNewline) {
  TestFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      "\xEF\xBB\xBF\n \t\r\n{\"text\":\"a\"}\r\n\n\n  {\"text\":\"b\"}  \n\r\n{\"text\":\"c\"}");
  const JsonlDataset dataset = open(path);
  EXPECT_EQ(dataset.num_documents(), 3);
  EXPECT_EQ(texts_of(dataset), (Texts{"a", "b", "c"}));
}

TEST(JsonlDataset, DealsTheDocumentsToTheRowsInTurn) {
  TestFolder folder;
  Texts all;
  for (int i = 0; i < 11; ++i) all.push_back("document " + std::to_string(i));
  folder.write("b/1.jsonl", lines({all.begin(), all.begin() + 4}));
  folder.write("b/2.jsonl", "\n");
  folder.write("b/3.jsonl", lines({all.begin() + 4, all.end()}));
  folder.write("b/notes.txt", "not part of it");
  const JsonlDataset dataset = open(folder.at("b"));
  EXPECT_EQ(texts_of(dataset), all);
  for (int64_t num_rows : {2, 3, 11}) {
    for (int64_t row = 0; row < num_rows; ++row) {
      Texts wanted;
      for (size_t i = static_cast<size_t>(row); i < all.size(); i += static_cast<size_t>(num_rows))
        wanted.push_back(all[i]);
      EXPECT_EQ(texts_of(dataset, row, num_rows), wanted);
    }
  }
}

TEST(JsonlDataset, ContinuesExactlyWhereItsStateWasTaken) {
  TestFolder folder;
  const JsonlDataset dataset = open(folder.write("a.jsonl", lines({"a", "b", "c", "d", "e"})));
  for (int num_read = 0; num_read <= 3; ++num_read) {
    const auto stream = dataset.open({.row = 0, .num_rows = 2});
    stream->start_epoch(4);
    Document document;
    for (int i = 0; i < num_read; ++i) ASSERT_TRUE(stream->next(document));
    const Value state = parse_json(to_json(stream->state()));  // as a checkpoint stores it
    const Texts wanted = rest_of(*stream);
    const auto resumed = dataset.open({.row = 0, .num_rows = 2});
    resumed->restore(state);
    EXPECT_EQ(resumed->state(), state);
    EXPECT_EQ(resumed->state().at("epoch").as_integer(), 4);
    EXPECT_EQ(rest_of(*resumed), wanted);
    resumed->start_epoch(5);
    EXPECT_EQ(rest_of(*resumed), (Texts{"a", "c", "e"}));
  }
}

TEST(JsonlDataset, RefusesAStateThatIsNotOfItsRow) {
  TestFolder folder;
  const JsonlDataset dataset = open(folder.write("a.jsonl", lines({"a", "b", "c", "d", "e"})));
  const auto stream = dataset.open({.row = 1, .num_rows = 2});
  for (const char* state :
       {R"({"epoch":0,"next":2})", R"({"epoch":0,"next":-1})", R"({"epoch":0,"next":7})",
        R"({"epoch":-1,"next":1})", R"({"epoch":0})", R"({"epoch":0,"next":"1"})", "null"}) {
    const Error error = error_of([&] { stream->restore(parse_json(state)); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << state;
    EXPECT_TRUE(holds(error.what(), "cannot restore a data set position")) << state;
  }
  stream->restore(parse_json(R"({"epoch":0,"next":5})"));  // at the end of the epoch
  EXPECT_EQ(rest_of(*stream), Texts());
}

TEST(JsonlDataset, TakesAGlob) {
  TestFolder folder;
  folder.write("x/c4.1.json", lines({"b"}));
  folder.write("x/c4.0.json", lines({"a"}));
  folder.write("x/other.json", lines({"no"}));
  folder.write("y/c4.0.json", lines({"c"}));
  EXPECT_EQ(texts_of(open(folder.at("*/c4.*.json"))), (Texts{"a", "b", "c"}));
  const Error error = error_of([&] { open(folder.at("*/d4.*")); });
  EXPECT_TRUE(holds(error.what(), "no file matches data set path"));
}

TEST(JsonlDataset, AFileWhoseNameIsAGlobIsItself) {
  TestFolder folder;
  EXPECT_EQ(texts_of(open(folder.write("a[1].jsonl", lines({"a"})))), Texts{"a"});
}

TEST(JsonlDataset, FingerprintTellsContentsApartButNotPlaces) {
  TestFolder folder;
  folder.write("a/1.jsonl", lines({"one", "two"}));
  folder.write("moved/1.jsonl", lines({"one", "two"}));
  folder.write("renamed/2.jsonl", lines({"one", "two"}));
  folder.write("longer/1.jsonl", lines({"one", "three"}));
  folder.write("joined/1.jsonl", lines({std::string("one") + std::string(15, 'x')}));
  const std::string fingerprint = open(folder.at("a")).fingerprint();
  EXPECT_EQ(fingerprint.size(), 32U);
  EXPECT_EQ(open(folder.at("moved")).fingerprint(), fingerprint);
  EXPECT_EQ(open(folder.at("moved/1.jsonl")).fingerprint(), fingerprint);
  EXPECT_EQ(open(folder.at("a/*.jsonl")).fingerprint(), fingerprint);
  ASSERT_EQ(std::filesystem::file_size(folder.at("joined/1.jsonl")),
            std::filesystem::file_size(folder.at("a/1.jsonl")));
  for (const char* other : {"renamed", "longer", "joined"})
    EXPECT_NE(open(folder.at(other)).fingerprint(), fingerprint) << other;
}

TEST(JsonlDataset, StreamsMayBeReadByDifferentThreads) {
  TestFolder folder;
  Texts all;
  for (int i = 0; i < 2000; ++i) all.push_back(std::to_string(i));
  const JsonlDataset dataset = open(folder.write("a.jsonl", lines(all)));
  std::vector<Texts> read(4);
  std::vector<std::thread> threads;
  for (size_t row = 0; row < read.size(); ++row)
    threads.emplace_back([&, row] { read[row] = texts_of(dataset, static_cast<int64_t>(row), 4); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(read[i % 4].at(i / 4), all[i]);
}

TEST(JsonlDataset, ReadsAVeryLongLine) {
  TestFolder folder;
  const std::string text(100 << 20, 'x');
  const std::string line = "{\"text\":\"" + text + "\"}\n";
  EXPECT_EQ(texts_of(open(folder.write("a.jsonl", lines({"short"}) + line + lines({"end"})))),
            (Texts{"short", text, "end"}));
}

TEST(JsonlDataset, NamesFileAndLineOfEveryBadLine) {
  struct Case {
    std::string line, wanted;
  };
  const Case kCases[] = {
      {R"({"text":"a)", "malformed JSON at column "},
      {R"({"text":"a"} x)", "malformed JSON at column 14: syntax error"},
      {R"({"text":})", "malformed JSON at column 9"},
      {"hello", "malformed JSON at column 1: syntax error"},
      {R"({"text":"a)"s + "\x01" + R"("})", "near: {\"text\":\"a\\x01\"}"},
      {R"({"text":"\ud800"})", "malformed JSON at column 16"},
      {R"({"text":"\q"})", "malformed JSON at column 11"},
      {R"({"x":1e999,"text":"a"})", "number overflow"},
      {"{\"text\":\"\xC3(\"}", "ill-formed UTF-8 byte; near: {\"text\":\"\\xc3(\"}"},
      {"\xFF\xFE{", "malformed JSON at column 1"},
      {R"(["text"])", "the line is a list, not an object"},
      {R"("text")", "the line is a string, not an object"},
      {"12", "the line is a number, not an object"},
      {"null", "the line is null, not an object"},
      {R"({"body":"b","id":1})",
       "field 'text' is missing; the object has 'body', 'id'; option 'field'"},
      {"{}", "field 'text' is missing; the object has no fields"},
      {R"({"text":12})", "field 'text' is a number, not a string"},
      {R"({"text":null})", "field 'text' is null, not a string"},
      {R"({"text":["a"]})", "field 'text' is a list, not a string"},
      {R"({"text":{"text":"a"}})", "field 'text' is an object, not a string"},
      {R"({"text":"a","text":false})", "field 'text' is a boolean, not a string"},
      {"{\"text\":\"a\"}"s + '\0', "a NUL byte at column 13"},
      {"{\"text\":\"a"s + '\0' + "b\"}", "a NUL byte at column 11"},
  };
  for (const Case& c : kCases) {
    for (const char* before : {"", "{\"text\":\"fine\"}\n\n\r\n"}) {
      const Error error = error_in(before + c.line + "\n{\"text\":\"fine\"}\n");
      EXPECT_EQ(error.kind(), ErrorKind::data) << c.line;
      EXPECT_TRUE(holds(error.what(), std::string("bad.jsonl:") + (*before ? "4: " : "1: ")));
      EXPECT_TRUE(holds(error.what(), c.wanted));
      EXPECT_LT(std::string(error.what()).size(), 400U);
    }
  }
}

TEST(JsonlDataset, ShowsAFewBytesOfALongBadLineOnly) {
  const Error error = error_in("{\"text\":\"" + std::string(1 << 20, 'y') + "\n");
  EXPECT_TRUE(holds(error.what(), "bad.jsonl:1: malformed JSON at column "));
  EXPECT_LT(std::string(error.what()).size(), 400U);
  EXPECT_TRUE(holds(error_in(std::string(1 << 20, '[')).what(), "bad.jsonl:1: "));
}

TEST(JsonlDataset, SaysAWrongFieldBeforeAnythingIsRead) {
  TestFolder folder;
  folder.write("a/1.jsonl", R"({"body":"b","text":"a"})");
  folder.write("a/2.jsonl", R"({"text":"a"})");
  const Error error = error_of([&] { open(folder.at("a"), "body"); });
  EXPECT_TRUE(holds(error.what(), "2.jsonl:1: field 'body' is missing; the object has 'text'"));
}

TEST(JsonlDataset, SaysWhatIsWrongWithItsPath) {
  TestFolder folder;
  folder.write("empty.jsonl", "");
  folder.write("blank.jsonl", "\n \r\n");
  folder.write("bom.jsonl", "\xEF\xBB\xBF");
  folder.write("a.jsonl.gz", "x");
  folder.write("zipped/a.jsonl.zst", "x");
  folder.write("none/a.txt", "x");
  struct Case {
    std::string path;
    ErrorKind kind;
    std::string wanted;
  };
  const Case kCases[] = {
      {"", ErrorKind::config, "set [training] dataset_path"},
      {folder.at("missing.jsonl"), ErrorKind::io, "missing.jsonl' does not exist"},
      {folder.at("empty.jsonl"), ErrorKind::data, "empty.jsonl' holds no document"},
      {folder.at("blank.jsonl"), ErrorKind::data, "blank.jsonl' holds no document"},
      {folder.at("bom.jsonl"), ErrorKind::data, "bom.jsonl' holds no document"},
      {folder.at("a.jsonl.gz"), ErrorKind::data, "compressed (.gz) files is not built yet"},
      {folder.at("*.gz"), ErrorKind::data, "compressed (.gz) files is not built yet"},
      {folder.at("zipped"), ErrorKind::data, "compressed (.zst) files is not built yet"},
      {folder.at("none"), ErrorKind::data, "none' holds no *.jsonl file"},
      {"/dev/null", ErrorKind::io, "not a regular file"},
  };
  for (const Case& c : kCases) {
    const Error error = error_of([&] { open(c.path); });
    EXPECT_EQ(error.kind(), c.kind) << c.path;
    EXPECT_TRUE(holds(error.what(), c.wanted));
  }
  EXPECT_EQ(error_of([&] { open(folder.at("a.jsonl.gz"), ""); }).kind(), ErrorKind::config);
}

TEST(JsonlDataset, RefusesMoreRowsThanDocuments) {
  TestFolder folder;
  const JsonlDataset dataset = open(folder.write("a.jsonl", lines({"a", "b"})));
  const Error error = error_of([&] { dataset.open({.row = 0, .num_rows = 3}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "holds 2 documents, fewer than the 3 rows"));
}

TEST(JsonlDataset, NoticesThatAFileChangedUnderIt) {
  TestFolder folder;
  const std::string path = folder.write("a.jsonl", lines({"a", "b"}));
  const JsonlDataset dataset = open(path);
  const auto stream = dataset.open({.row = 0, .num_rows = 1});
  Document document;
  ASSERT_TRUE(stream->next(document));
  std::filesystem::resize_file(path, 20);
  EXPECT_TRUE(holds(error_of([&] { stream->next(document); }).what(), "has become shorter than"));
  EXPECT_TRUE(
      holds(error_of([&] { texts_of(dataset); }).what(), "has changed from 26 to 20 bytes"));
}

TEST(LineIndex, FindsLinesAcrossTheChunksItReads) {
  // a line end, a blank line or a byte order mark may stand anywhere around a chunk's border
  TestFolder folder;
  constexpr size_t kBorder = size_t{256} << 10;
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string first(kBorder - shift, 'x');
    const std::string content = "\xEF\xBB\xBF" + first + "\n \r\n\ny\n" + first + "\nz";
    const InputFile file(folder.write("a", content));
    std::vector<uint64_t> starts;
    index_lines(file, starts);
    const uint64_t y = content.find('y'), z = content.find('z');
    EXPECT_EQ(starts, (std::vector<uint64_t>{3, y, y + 2, z}));
    EXPECT_EQ(line_number(file, y), 4);
    EXPECT_EQ(line_number(file, z), 6);
  }
}

}  // namespace
}  // namespace titan::datasets
