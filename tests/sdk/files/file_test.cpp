// titan/files/file.h: positional reads and writes; errors name the path.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include <titan/files/file.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;

TEST(File, ReadsWhatWasWrittenAtItsPlace) {
  const TestFolder folder;
  const std::string path = folder.at("file");
  {
    const File file = File::create(path);
    file.write(4, "efgh", 4);
    file.write(0, "abcd", 4);
    file.write(2, "", 0);
    file.sync();
    EXPECT_EQ(file.size(), 8);
  }
  const File file = File::open_to_read(path);
  char bytes[3];
  file.read(3, bytes, 3);
  EXPECT_EQ(std::string(bytes, 3), "def");
  EXPECT_EQ(read_text(path), "abcdefgh");
  EXPECT_EQ(file.path(), path);
}

TEST(File, LosesItsContentWhenItIsCreatedAgain) {
  const TestFolder folder;
  const std::string path = folder.write("file", "long content");
  File::create(path).write(0, "x", 1);
  EXPECT_EQ(read_text(path), "x");
}

TEST(File, IsReadByManyThreadsAtOnce) {
  const TestFolder folder;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += static_cast<char>(i * 7);
  const File file = File::open_to_read(folder.write("file", content));
  std::vector<std::string> parts(8, std::string(10'000, '\0'));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts.size(); ++i)
    threads.emplace_back(
        [&, i] { file.read(static_cast<int64_t>(i) * 10'000, parts[i].data(), 10'000); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i], content.substr(i * 10'000, 10'000));
}

TEST(File, SaysWhereItEndsWhenMoreIsWanted) {
  const TestFolder folder;
  const File file = File::open_to_read(folder.write("file", "abc"));
  char bytes[8];
  const Error error = error_of([&] { file.read(1, bytes, 8); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(), "cannot read " + folder.at("file") +
                                 ": it ends at byte 3, but bytes up to 9 are wanted");
}

TEST(File, NamesThePathWhenItCannotBeOpened) {
  const TestFolder folder;
  const Error missing = error_of([&] { File::open_to_read(folder.at("none")); });
  EXPECT_EQ(missing.kind(), ErrorKind::io);
  EXPECT_EQ(missing.message(), "cannot open " + folder.at("none") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { File::create(folder.at("none/file")); }).message(),
            "cannot create " + folder.at("none/file") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_text(folder.path()); }).message(),
            "cannot read " + folder.path().string() + ": it is not a regular file");
}

TEST(File, IsNotWaitedForWhenItIsAPipe) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(
      holds(error_of([&] { read_text(folder.at("pipe")); }).message(), "it is not a regular file"));
}

TEST(File, ReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  const File file = File::create("/dev/full");
  const Error error = error_of([&] { file.write(0, "x", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(), "cannot write /dev/full: No space left on device");
}

TEST(File, IsNotInheritedByChildren) {
  const TestFolder folder;
  const std::string path = folder.write("file", "x");
  const File file = File::open_to_read(path);
  int num_found = 0;
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    std::error_code error;
    if (std::filesystem::read_symlink(link, error) != path) continue;
    ++num_found;
    EXPECT_TRUE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(num_found, 1);
}

TEST(File, LeavesNoDescriptorBehind) {
  const TestFolder folder;
  const std::string path = folder.write("a", "first");
  const auto num_open = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto before = num_open();
  {
    File file = File::open_to_read(path);
    const File moved = std::move(file);
    const File created = File::create(folder.at("b"));
    EXPECT_EQ(num_open(), before + 2);
  }
  EXPECT_EQ(num_open(), before);
}

TEST(File, MovesAndClosesOnce) {
  const TestFolder folder;
  File file = File::open_to_read(folder.write("a", "first"));
  File other = File::open_to_read(folder.write("b", "second"));
  other = std::move(file);
  EXPECT_EQ(other.size(), 5);
  const File third = std::move(other);
  EXPECT_EQ(third.size(), 5);
}

TEST(WriteTextAtomically, ReplacesTheTextAndLeavesNothingElse) {
  const TestFolder folder;
  write_text_atomically(folder.at("manifest.json"), "one");
  write_text_atomically(folder.at("manifest.json"), "two");
  EXPECT_EQ(folder.read("manifest.json"), "two");
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(WriteTextAtomically, KeepsTheOldTextWhenItFails) {
  const TestFolder folder;
  std::filesystem::create_directories(folder.at("taken/by/a/folder"));
  const Error error = error_of([&] { write_text_atomically(folder.at("taken"), "text"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.message(), "cannot rename "));
  EXPECT_TRUE(holds(error.message(), folder.at("taken")));
  EXPECT_TRUE(std::filesystem::exists(folder.at("taken/by/a/folder")));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "the temporary file stayed";
}

TEST(RenameFile, NamesBothPathsWhenItFails) {
  const TestFolder folder;
  EXPECT_EQ(
      error_of([&] { rename_file(folder.at("a"), folder.at("b")); }).message(),
      "cannot rename " + folder.at("a") + " to " + folder.at("b") + ": No such file or directory");
  rename_file(folder.write("a", "x"), folder.at("b"));
  EXPECT_EQ(folder.read("b"), "x");
}

TEST(SyncFolder, TakesFoldersOnly) {
  const TestFolder folder;
  sync_folder(folder.path());
  EXPECT_TRUE(holds(error_of([&] { sync_folder(folder.write("file", "")); }).message(),
                    "cannot open folder " + folder.at("file")));
}

}  // namespace
}  // namespace titan
