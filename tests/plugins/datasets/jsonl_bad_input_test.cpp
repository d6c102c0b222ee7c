// The jsonl dataset and bad input: malformed lines, truncated files, invalid paths and positions.
#include <filesystem>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "plugins/datasets/jsonl/jsonl_dataset.h"
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
using namespace std::string_literals;

JsonlDataset open_lines(const std::string& path, const JsonLinesOptions& options = {}) {
  return JsonlDataset(options, {.path = path});
}

/// The Error of reading all documents of a file with this content.
Error error_in(const std::string& content, const JsonLinesOptions& options = {}) {
  TestFolder folder;
  const std::string path = folder.write("bad.jsonl", content);
  return error_of([&] { texts_of(open_lines(path, options)); });
}

TEST(JsonlDatasetBadInput, NamesTheDataSetThatReadsParquet) {
  const TestFolder folder;
  const std::string path = folder.write("a.parquet", "PAR1\x15\x04 and so on PAR1");
  for (const bool index : {true, false})
    for (const bool skips : {true, false}) {
      const Error error =
          error_of([&] { open_lines(path, {.index = index, .skip_bad_lines = skips}); });
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_TRUE(holds(error.message(), "'" + path + "' is a Parquet file"));
      EXPECT_TRUE(holds(error.message(), "choose the data set \"parquet\""));
    }
}

TEST(JsonlDatasetBadInput, NamesFileAndLineOfEveryBadLine) {
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
      {R"({"text":1e999})", "field 'text' is a number, not a string"},
      {"{\"text\":\"\xC3(\"}", "ill-formed UTF-8 byte; near: {\"text\":\"\\xc3(\"}"},
      {"\xFF\xFE{", "the line is not UTF-8; it looks like UTF-16: save it as UTF-8"},
      {"{\0\"\0t\0\"\0"s, "the line is not UTF-8; it looks like UTF-16: save it as UTF-8"},
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
      for (const bool index : {true, false}) {
        const std::string content = before + c.line + "\n{\"text\":\"fine\"}\n";
        const Error error = error_in(content, {.index = index});
        EXPECT_EQ(error.kind(), ErrorKind::data) << c.line;
        EXPECT_TRUE(holds(error.what(), std::string("bad.jsonl:") + (*before ? "4: " : "1: ")));
        EXPECT_TRUE(holds(error.what(), c.wanted));
        EXPECT_LT(std::string(error.what()).size(), 400U);
      }
    }
  }
}

TEST(JsonlDatasetBadInput, ShowsAFewBytesOfALongBadLineOnly) {
  const Error error = error_in("{\"text\":\"" + std::string(1 << 20, 'y') + "\n");
  EXPECT_TRUE(holds(error.what(), "bad.jsonl:1: malformed JSON at column "));
  EXPECT_LT(std::string(error.what()).size(), 400U);
  EXPECT_TRUE(holds(error_in(std::string(1 << 20, '[')).what(), "bad.jsonl:1: "));
}

TEST(JsonlDatasetBadInput, SaysAWrongFieldBeforeAnythingIsRead) {
  TestFolder folder;
  folder.write("a/1.jsonl", R"({"body":"b","text":"a"})");
  folder.write("a/2.jsonl", R"({"text":"a"})");
  const Error error = error_of([&] { open_lines(folder.at("a"), {.field = "body"}); });
  EXPECT_TRUE(holds(error.what(), "2.jsonl:1: field 'body' is missing; the object has 'text'"));
}

TEST(JsonlDatasetBadInput, SaysWhatIsWrongWithItsPath) {
  TestFolder folder;
  folder.write("empty.jsonl", "");
  folder.write("blank.jsonl", "\n \r\n");
  folder.write("bom.jsonl", "\xEF\xBB\xBF");
  folder.write("a.jsonl.gz", "x");
  folder.write("b.jsonl.gz", gzip_member("\n\n"));
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
      {folder.at("a.jsonl.gz"), ErrorKind::data, "a.jsonl.gz' is "},
      {folder.at("b.jsonl.gz"), ErrorKind::data, "b.jsonl.gz' holds no document"},
      {folder.at("none"), ErrorKind::data, "none' holds no file that matches *.jsonl, *.json, "},
      {"/dev/null", ErrorKind::io, "not a regular file"},
  };
  for (const Case& c : kCases) {
    const Error error = error_of([&] { open_lines(c.path); });
    EXPECT_EQ(error.kind(), c.kind) << c.path;
    EXPECT_TRUE(holds(error.what(), c.wanted));
  }
  EXPECT_EQ(error_of([&] { open_lines(folder.at("blank.jsonl"), {.field = ""}); }).kind(),
            ErrorKind::config);
}

TEST(JsonlDatasetBadInput, RefusesPipesAndDevicesInsteadOfWaitingForThem) {
  for (const char* name : {"pipe.jsonl", "pipe.jsonl.gz"}) {
    TestFolder folder;
    folder.write("x/a.jsonl", json_lines({"one"}));
    const std::string pipe = folder.at(std::string("x/") + name);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path : {folder.at("x"), pipe, folder.at("x/*.jsonl*")}) {
      const Error error = error_of([&] { open_lines(path); });
      EXPECT_EQ(error.kind(), ErrorKind::io);
      EXPECT_TRUE(holds(error.what(), "cannot read '" + pipe + "': it is not a regular file"));
    }
  }
  EXPECT_TRUE(holds(error_of([] { open_lines("/dev/zero"); }).what(),
                    "cannot read '/dev/zero': it is not a regular file"));
}

TEST(JsonlDatasetBadInput, MayBeMuchBetweenTwoDocuments) {
  TestFolder folder;
  std::string content = json_lines({"a"});
  for (int i = 0; i < 15000; ++i) content += std::string(100, 'x') + "\n";
  content += json_lines({std::string(3000000, 'b')});
  const std::string path = folder.write("a.jsonl", content);
  ::testing::internal::CaptureStderr();
  const JsonlDataset dataset = open_lines(path, {.skip_bad_lines = true});
  EXPECT_TRUE(holds(::testing::internal::GetCapturedStderr(), "skipped 15000 lines"));
  EXPECT_EQ(texts_of(dataset), (Texts{"a", std::string(3000000, 'b')}));
  EXPECT_EQ(dataset.indexed()->place(1), "a.jsonl:15002");
}

TEST(JsonlDatasetBadInput, ACompressedFileThatEndsEarlyIsAnErrorAndNoEnd) {
  Texts all;
  for (int i = 0; i < 50; ++i) all.push_back("document " + std::to_string(i * i * i));
  const std::string content = json_lines(all);
  TestFolder folder;
  for (const auto& [name, packed] : {std::pair{"a.jsonl.gz", gzip_member(content)},
                                     std::pair{"a.jsonl.zst", zstd_frame(content)}}) {
    for (size_t size = 0; size < packed.size(); ++size) {
      const std::string path = folder.write(name, packed.substr(0, size));
      const Error error = error_of([&] { texts_of(open_lines(path)); });
      EXPECT_TRUE(holds(error.what(), "'" + path + "' is ")) << size;
      EXPECT_TRUE(holds(error.what(), "at byte " + std::to_string(size) + " of the file")) << size;
    }
  }
}

TEST(JsonlDatasetBadInput, PassesOverBadLinesWhenAskedAndTellsOnce) {
  TestFolder folder;
  const std::string content = "bad\n{\"text\":\"a\"}\n\n{\"body\":1}\n{\"text\":\"b\"}\n" +
                              std::string("[]\n{\"text\":\"c\"}\n\xff");
  for (const bool index : {true, false}) {
    for (const std::string& path :
         {folder.write("a.jsonl", content), folder.write("a.jsonl.gz", gzip_member(content))}) {
      ::testing::internal::CaptureStderr();
      {
        const JsonlDataset dataset = open_lines(path, {.index = index, .skip_bad_lines = true});
        EXPECT_EQ(texts_of(dataset), (Texts{"a", "b", "c"}));
        EXPECT_EQ(texts_of(dataset), (Texts{"a", "b", "c"}));
        if (dataset.streamed()) {  // a reader that skips malformed lines skips the same ones
          const auto stream = dataset.streamed()->open(0);
          Document document;
          EXPECT_TRUE(stream->skip());
          EXPECT_TRUE(stream->skip());
          EXPECT_EQ(stream->place(), std::filesystem::path(path).filename().string() + ":5");
          EXPECT_TRUE(stream->next(document));
          EXPECT_EQ(document.text, "c");
          EXPECT_FALSE(stream->skip());
        }
      }
      const std::string told = ::testing::internal::GetCapturedStderr();
      const size_t warning = told.find("skipped 4 lines of '" + path + "'");
      EXPECT_NE(warning, told.npos) << told;
      EXPECT_EQ(told.find("skipped", warning + 1), told.npos) << told;
      EXPECT_TRUE(holds(told, "the first is line 1: malformed JSON at column 1"));
    }
  }
  const Error error = error_in("bad\n{}\n", {.skip_bad_lines = true});
  EXPECT_TRUE(holds(error.what(), "holds no document"));
}

TEST(JsonlDatasetBadInput, RefusesAPositionThatIsNoneOfTheShard) {
  TestFolder folder;
  const std::string content = json_lines({"a", "b", "c"});
  for (const std::string& path :
       {folder.write("a.jsonl", content), folder.write("a.jsonl.gz", gzip_member(content))}) {
    const JsonlDataset dataset = open_lines(path, {.index = false});
    const auto stream = dataset.streamed()->open(0);
    const std::string end = std::to_string(content.size() + 1);
    for (const std::string& position :
         {R"({"lines":1,"offset":12})"s, R"({"lines":1,"offset":14})"s,
          R"({"lines":0,"offset":13})"s, R"({"lines":1,"offset":0})"s,
          R"({"lines":-1,"offset":13})"s, R"({"lines":1,"offset":-13})"s, R"({"lines":1})"s,
          R"({"offset":13})"s, R"({"lines":"1","offset":13})"s, "null"s,
          R"({"lines":3,"offset":)" + end + "}"}) {
      const Error error = error_of([&] { stream->seek(parse_json(position)); });
      EXPECT_EQ(error.kind(), ErrorKind::data) << position;
      EXPECT_TRUE(holds(error.what(), "cannot continue ")) << position;
    }
    stream->seek(parse_json(R"({"lines":1,"offset":13})"));
    EXPECT_EQ(rest_of(*stream), (Texts{"b", "c"}));
  }
}

}  // namespace
}  // namespace titan::datasets
