// The dataset text_folder: which files are documents, links, and invalid UTF-8.
#include "plugins/datasets/text_folder/text_folder_dataset.h"

#include <filesystem>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/plugins/datasets/files_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;
using titan::testing::Texts;
using titan::testing::texts_of;

TextFolderDataset open_folder(const std::string& path, const TextFolderOptions& options = {}) {
  return TextFolderDataset(options, {.path = path});
}

Texts places_of(const TextFolderDataset& dataset) {
  Texts places;
  for (int64_t i = 0; i < dataset.size(); ++i) places.push_back(dataset.place(i));
  return places;
}

TEST(TextFolder, EachFileBelowIsADocumentInTheOrderOfTheNames) {
  TestFolder folder;
  folder.write("x/b/2.md", "# two\r\n");
  folder.write("x/b.txt",
               "\xEF\xBB\xBF"
               "b \xC3\xA4\n");
  folder.write("x/a/deep/er/1.txt", "one");
  folder.write("x/a/empty.txt", "");
  folder.write("x/a/mark.txt", "\xEF\xBB\xBF");
  folder.write("x/a/picture.png", "\xFF");
  folder.write("x/.git/notes.txt", "hidden");
  folder.write("x/.hidden.txt", "hidden");
  folder.write("x/name.txt/in_it.txt", "a folder may be named like a file");
  const TextFolderDataset dataset = open_folder(folder.at("x"));
  EXPECT_EQ(places_of(dataset),
            (Texts{"a/deep/er/1.txt", "b.txt", "b/2.md", "name.txt/in_it.txt"}));
  EXPECT_EQ(texts_of(dataset),
            (Texts{"one", "b \xC3\xA4\n", "# two\r\n", "a folder may be named like a file"}));
  EXPECT_EQ(texts_of(open_folder(folder.at("x"), {.suffixes = {".md", "_it.txt"}})).size(), 2U);
}

TEST(TextFolder, FollowsLinksButNoLoop) {
  TestFolder folder;
  folder.write("x/a/1.txt", "one");
  folder.write("outside/2.txt", "two");
  folder.write("blobs/abc", "three");
  fs::create_directory_symlink("..", folder.at("x/a/up"));
  fs::create_directory_symlink(".", folder.at("x/self"));
  fs::create_directory_symlink("a", folder.at("x/z"));  // the same folder under a second name
  fs::create_directory_symlink(folder.at("outside"), folder.at("x/linked"));
  fs::create_symlink(folder.at("blobs/abc"), folder.at("x/3.txt"));
  const TextFolderDataset dataset = open_folder(folder.at("x"));
  EXPECT_EQ(places_of(dataset), (Texts{"3.txt", "a/1.txt", "linked/2.txt"}));
  EXPECT_EQ(texts_of(dataset), (Texts{"three", "one", "two"}));

  fs::create_symlink("nowhere", folder.at("x/dangling.txt"));
  const Error error = error_of([&] { open_folder(folder.at("x")); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "dangling.txt': it links to a file that does not exist"));
}

TEST(TextFolder, RefusesAPipeInsteadOfWaitingForIt) {
  TestFolder folder;
  folder.write("x/a.txt", "one");
  ASSERT_EQ(::mkfifo(folder.at("x/b.txt").c_str(), 0600), 0);
  const Error error = error_of([&] { open_folder(folder.at("x")); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "b.txt': it is not a regular file"));
}

TEST(TextFolder, RefusesWhatIsNoUtf8OrReplacesItWhenAsked) {
  TestFolder folder;
  folder.write("x/latin.txt", "caf\xE9 au lait");
  const TextFolderDataset strict = open_folder(folder.at("x"));
  Document document;
  const Error error = error_of([&] { strict.read(0, document); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "latin.txt' is not UTF-8 at byte 3"));
  const TextFolderDataset lenient =
      open_folder(folder.at("x"), {.invalid_utf8 = InvalidUtf8::replace});
  EXPECT_EQ(texts_of(lenient), Texts{"caf\xEF\xBF\xBD au lait"});
  EXPECT_NE(strict.fingerprint(), lenient.fingerprint());
}

TEST(TextFolder, CallsUtf16ByItsName) {
  TestFolder folder;
  folder.write("x/mark.txt", std::string("\xff\xfe"
                                         "a\0b\0",
                                         6));
  folder.write("x/none.txt", std::string("\0a\0b\0c", 6));  // well-formed UTF-8 with zero bytes
  const TextFolderDataset dataset = open_folder(folder.at("x"));
  for (const int64_t index : {0, 1}) {
    Document document;
    const Error error = error_of([&] { dataset.read(index, document); });
    EXPECT_TRUE(holds(error.what(), "is not UTF-8; it looks like UTF-16: save it as UTF-8"));
  }
}

TEST(TextFolder, FingerprintTellsContentsApartButNotPlaces) {
  TestFolder folder;
  folder.write("a/1.txt", "one");
  folder.write("moved/1.txt", "one");
  folder.write("longer/1.txt", "three");
  folder.write("renamed/2.txt", "one");
  const std::string fingerprint = open_folder(folder.at("a")).fingerprint();
  EXPECT_EQ(fingerprint.size(), 32U);
  EXPECT_EQ(open_folder(folder.at("moved")).fingerprint(), fingerprint);
  EXPECT_EQ(open_folder(folder.at("moved/")).fingerprint(), fingerprint);
  for (const char* other : {"longer", "renamed"})
    EXPECT_NE(open_folder(folder.at(other)).fingerprint(), fingerprint) << other;
}

TEST(TextFolder, MayBeReadByAnyNumberOfThreads) {
  TestFolder folder;
  for (int i = 0; i < 50; ++i) folder.write("x/" + std::to_string(i) + ".txt", std::to_string(i));
  const TextFolderDataset dataset = open_folder(folder.at("x"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Document document;
      for (int64_t i = 0; i < dataset.size(); ++i) {
        dataset.read(i, document);
        EXPECT_EQ(document.text + ".txt", dataset.place(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TextFolder, SaysWhatIsWrongWithItsPath) {
  TestFolder folder;
  folder.write("x/a.html", "x");
  folder.write("x/empty.txt", "");
  const std::string file = folder.write("file.txt", "x");
  EXPECT_TRUE(
      holds(error_of([] { open_folder(""); }).what(), "set [training] dataset_path to a folder"));
  EXPECT_TRUE(holds(error_of([&] { open_folder(file); }).what(), "file.txt' is not a folder"));
  EXPECT_TRUE(holds(error_of([&] { open_folder(folder.at("y")); }).what(), "y' is not there"));
  EXPECT_TRUE(holds(error_of([&] { open_folder(folder.at("x")); }).what(),
                    "holds no non-empty file that matches *.txt *.md; option 'suffixes'"));
  EXPECT_EQ(error_of([&] { open_folder(folder.at("x"), {.suffixes = {}}); }).kind(),
            ErrorKind::config);
}

TEST(TextFolder, NoticesThatAFileChangedUnderIt) {
  TestFolder folder;
  const std::string path = folder.write("x/a.txt", "four");
  const TextFolderDataset dataset = open_folder(folder.at("x"));
  folder.write("x/a.txt", "longer");
  Document document;
  EXPECT_TRUE(holds(error_of([&] { dataset.read(0, document); }).what(),
                    "a.txt' has changed from 4 to 6 bytes"));
}

}  // namespace
}  // namespace titan::datasets
