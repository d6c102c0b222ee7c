#include <titan/files/file.h>
#include <titan/files/growing_file.h>

#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

using testing::error_of;
using testing::TestFolder;

TEST(GrowingFile, HoldsWhatWasAppendedInOrderHoweverItWasWritten) {
  const TestFolder folder;
  GrowingFile file(folder.at("part"));
  file.append("one ");
  file.write("two ");
  file.append(std::string(size_t{3} << 20, 'x'));
  file.append("end");
  EXPECT_EQ(file.size(), 8 + (int64_t{3} << 20) + 3);
  file.sync();
  const std::string text = read_text(file.path());
  EXPECT_EQ(text.size(), static_cast<size_t>(file.size()));
  EXPECT_TRUE(text.starts_with("one two xxx") && text.ends_with("xend"));
  std::string piece(3, ' ');
  file.read(4, piece.data(), piece.size());
  EXPECT_EQ(piece, "two");

  file.append("lost");
  file.truncate(7);
  file.append("!");
  file.flush();
  EXPECT_EQ(read_text(file.path()), "one two!");
}

TEST(GrowingFile, BelongsToOneAtATimeAndLearnsWhatTheOtherWrote) {
  const TestFolder folder;
  GrowingFile second(folder.at("part"));
  {
    GrowingFile first(folder.at("part"));
    ASSERT_TRUE(first.lock());
    EXPECT_FALSE(second.lock());
    first.write("12345");
  }
  ASSERT_TRUE(second.lock());
  EXPECT_EQ(second.size(), 5);
  const GrowingFile moved = std::move(second);
  EXPECT_FALSE(GrowingFile(folder.at("part")).lock()) << "a moved file stays locked";
}

TEST(GrowingFile, KnowsWhenItsNameLeadsElsewhere) {
  const TestFolder folder;
  const GrowingFile file(folder.at("part"));
  EXPECT_TRUE(file.is_linked());
  std::filesystem::rename(folder.at("part"), folder.at("done"));
  EXPECT_FALSE(file.is_linked());
  std::filesystem::create_symlink(folder.at("done"), folder.at("part"));
  EXPECT_TRUE(file.is_linked()) << "through a link";
  EXPECT_THROW(GrowingFile(folder.at("part"), GrowingFile::Links::refuse), Error);
  const GrowingFile strict(folder.at("done"), GrowingFile::Links::refuse);
  std::filesystem::rename(folder.at("done"), folder.at("other"));
  std::filesystem::create_symlink(folder.at("other"), folder.at("done"));
  EXPECT_FALSE(strict.is_linked()) << "a link is not the file";
}

TEST(GrowingFile, IsARegularFile) {
  const TestFolder folder;
  std::filesystem::create_directory(folder.at("folder"));
  EXPECT_THROW(GrowingFile(folder.at("folder")), Error);
  EXPECT_NE(error_of([&] { GrowingFile("/dev/null"); }).message().find("not a regular file"),
            std::string::npos);
}

}  // namespace
}  // namespace titan
