// The datasets c4, c4_validation and c4_test: which files they read, and their errors without them.
#include "plugins/datasets/c4/c4_dataset.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/plugins/datasets/files_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::gzip_member;
using titan::testing::holds;
using titan::testing::json_lines;
using titan::testing::TestFolder;
using titan::testing::Texts;
using titan::testing::texts_of;
using titan::testing::zstd_frame;

Texts train(const std::string& path) {
  return texts_of(C4Dataset({}, {.path = path}));
}
Texts validation(const std::string& path) {
  return texts_of(C4ValidationDataset({}, {.path = path}));
}

/// Shards of both splits in `folder`.
void write_shards(const TestFolder& folder, const std::string& inner) {
  for (const char* text : {"0", "1", "2"}) {
    const std::string number = "0000" + std::string(text);
    folder.write(inner + "c4-train." + number + "-of-01024.json.gz",
                 gzip_member(json_lines({std::string("train ") + text})));
    folder.write(inner + "c4-validation." + number + "-of-00008.json.gz",
                 gzip_member(json_lines({std::string("validation ") + text})));
  }
  folder.write(inner + "dataset_infos.json", "{}");
}

/// The working directory for one test.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& folder)
      : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  ~WorkingDirectory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST(C4Dataset, TakesTheShardsOfItsSplitHereOrInTheFolderEn) {
  for (const char* inner : {"", "en/"}) {
    TestFolder folder;
    write_shards(folder, std::string("c4/") + inner);
    EXPECT_EQ(train(folder.at("c4")), (Texts{"train 0", "train 1", "train 2"}));
    EXPECT_EQ(validation(folder.at("c4")), (Texts{"validation 0", "validation 1", "validation 2"}));
    const C4Dataset dataset({}, {.path = folder.at("c4")});
    EXPECT_EQ(dataset.streamed()->num_shards(), 3);
    EXPECT_EQ(dataset.streamed()->open(1)->place(), "c4-train.00001-of-01024.json.gz:0");
  }
}

TEST(C4Dataset, TakesAnyJsonLinesWhereThereAreNoShards) {
  TestFolder folder;
  folder.write("plain/b.jsonl", json_lines({"b"}));
  folder.write("plain/a.json", json_lines({"a"}));
  folder.write("inner/en/c.json.zst", zstd_frame(json_lines({"c"})));
  EXPECT_EQ(train(folder.at("plain")), (Texts{"a", "b"}));
  EXPECT_NE(C4Dataset({}, {.path = folder.at("plain")}).indexed(), nullptr);
  EXPECT_EQ(validation(folder.at("inner")), Texts{"c"});
}

TEST(C4Dataset, TakesAFileOrAGlobAsItIs) {
  TestFolder folder;
  write_shards(folder, "");
  EXPECT_EQ(train(folder.at("c4-validation.*1-of*.json.gz")), Texts{"validation 1"});
  EXPECT_EQ(train(folder.at("c4-train.00002-of-01024.json.gz")), Texts{"train 2"});
}

TEST(C4Dataset, SaysHowToGetTheDataWithoutAPath) {
  const Error of_train = error_of([] { train(""); });
  EXPECT_EQ(of_train.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(of_train.what(),
                    "`titan download dataset allenai/c4 --include 'en/c4-train.*.json.gz'` and set "
                    "[training] dataset_path"));
  const Error of_validation = error_of([] { validation(""); });
  EXPECT_TRUE(holds(of_validation.what(), "--include 'en/c4-validation.*.json.gz'"));
  EXPECT_TRUE(holds(of_validation.what(), "[validation] dataset_path"));
}

TEST(C4Dataset, SaysWhatItLookedForInAnEmptyFolder) {
  TestFolder folder;
  folder.write("x/readme.md", "no data");
  const Error error = error_of([&] { train(folder.at("x")); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "holds neither c4-train.*.json.gz nor other *.json or *.jsonl"));
  EXPECT_EQ(error_of([&] { train(folder.at("missing")); }).kind(), ErrorKind::io);
}

TEST(C4TestDataset, ReadsTheSampleOfTheSourceTree) {
  const WorkingDirectory top(TITAN_SOURCE_DIR);
  const C4TestDataset dataset({}, {});
  ASSERT_NE(dataset.indexed(), nullptr);
  EXPECT_EQ(dataset.indexed()->size(), 2737);  // the number in tests/assets/corpus/README.md
  size_t num_bytes = 0;
  for (const std::string& text : texts_of(dataset)) num_bytes += text.size();
  EXPECT_EQ(num_bytes, 1620961U);
}

TEST(C4TestDataset, FindsTheSampleOfItsInstallationFromAnyFolder) {
  TestFolder folder;
  const WorkingDirectory elsewhere(folder.path());
  EXPECT_EQ(C4TestDataset({}, {}).indexed()->size(), 2737);
  folder.write("own.jsonl", json_lines({"own"}));
  EXPECT_EQ(texts_of(C4TestDataset({}, {.path = "own.jsonl"})), Texts{"own"});
}

}  // namespace
}  // namespace titan::datasets
