// Tests of the data set @FULL_NAME@, which is made with its options as in a run.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

#include <titan/dataset.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

/// Removed at the end of a test.
struct TextFile {
  explicit TextFile(const std::string& text) { std::ofstream(path) << text; }
  ~TextFile() { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "@LIBRARY@." + std::to_string(::getpid()) + ".txt";
};

std::vector<std::string> all_documents(const titan::Dataset& dataset) {
  std::vector<std::string> texts;
  titan::Document document;
  for (int64_t i = 0; i < dataset.indexed()->size(); ++i) {
    dataset.indexed()->read(i, document);
    texts.push_back(document.text);
  }
  return texts;
}

TEST(@CLASS@, EachLineIsADocument) {
  const TextFile file("first\nsecond line\n\nlast");
  const auto dataset = make<titan::Dataset>("@FULL_NAME@", {}, {.path = file.path});
  EXPECT_EQ(all_documents(*dataset), (std::vector<std::string>{"first", "second line", "last"}));
}

TEST(@CLASS@, AResumedRunReadsTheSameDocuments) {
  const TextFile file("first\nsecond\nthird\n");
  const auto before = make<titan::Dataset>("@FULL_NAME@", {}, {.path = file.path});
  const auto after = make<titan::Dataset>("@FULL_NAME@", {}, {.path = file.path});
  EXPECT_EQ(all_documents(*before), all_documents(*after));
  EXPECT_EQ(before->fingerprint(), after->fingerprint());
}

TEST(@CLASS@, OtherContentHasAnotherFingerprint) {
  const TextFile file("first\nsecond\n");
  const std::string before = make<titan::Dataset>("@FULL_NAME@", {}, {.path = file.path})->fingerprint();
  std::ofstream(file.path) << "first\nsecond\nthird\n";
  EXPECT_NE(make<titan::Dataset>("@FULL_NAME@", {}, {.path = file.path})->fingerprint(), before);
}

TEST(@CLASS@, AMissingFileIsNamed) {
  try {
    make<titan::Dataset>("@FULL_NAME@", {}, {.path = "no/such/file.txt"});
    FAIL() << "it was opened";
  } catch (const titan::Error& error) {
    EXPECT_NE(std::string(error.what()).find("no/such/file.txt"), std::string::npos) << error.what();
  }
}

}  // namespace
