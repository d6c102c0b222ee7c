#include "plugins/commands/download/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::download {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

class RemotePaths : public ::testing::Test {
 protected:
  RemotePaths() {
    std::string name = (fs::temp_directory_path() / "titan_paths_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
    root_ = folder_ / "root";
    fs::create_directory(root_);
  }
  ~RemotePaths() override { fs::remove_all(folder_); }

  fs::path folder_, root_;
};

TEST_F(RemotePaths, ThatCouldLeaveTheFolderAreRefused) {
  for (const std::string_view path :
       {""sv,     "/a"sv,   "//a"sv,     ".."sv,    "../a"sv, "a/../b"sv,      "a/.."sv,
        "."sv,    "./a"sv,  "a/./b"sv,   "a//b"sv,  "a/"sv,   "a\\b"sv,        "..\\a"sv,
        "a\0b"sv, "a\nb"sv, "\x1b[2J"sv, "a\x7f"sv, ".git"sv, ".git/config"sv, "a/.GiT/b"sv})
    EXPECT_THROW(require_harmless(path), Error) << printable(path);
}

TEST_F(RemotePaths, OfOrdinaryReposAreTaken) {
  for (const std::string_view path :
       {"a", "en/c4-train.00000-of-01024.json.gz", ".gitattributes", "a b/c", "...", "..a", "a..",
        "\xc3\xa9/\xe4\xb8\xad.json", ".github/x", "~", "-rf"})
    EXPECT_NO_THROW(require_harmless(path)) << path;
}

TEST_F(RemotePaths, GetTheirFolders) {
  EXPECT_EQ(place_below(root_, "a/b/c"), root_ / "a/b/c");
  EXPECT_TRUE(fs::is_directory(root_ / "a/b"));
  EXPECT_EQ(place_below(root_, "c"), root_ / "c");
}

TEST_F(RemotePaths, DoNotFollowALinkOut) {
  fs::create_directory(folder_ / "root2");  // starts with the name of the root
  fs::create_symlink(folder_ / "root2", root_ / "out");
  fs::create_symlink("..", root_ / "up");
  EXPECT_THROW(place_below(root_, "out/x"), Error);
  EXPECT_THROW(place_below(root_, "out/deep/x"), Error);
  EXPECT_THROW(place_below(root_, "up/root2/x"), Error);
  EXPECT_TRUE(fs::is_empty(folder_ / "root2"));
}

TEST_F(RemotePaths, MayFollowALinkInside) {
  fs::create_directory(root_ / "there");
  fs::create_symlink("there", root_ / "here");
  EXPECT_EQ(place_below(root_, "here/x"), root_ / "here/x");
  fs::create_symlink(root_, folder_ / "entry");  // the folder given by the user may be a link
  EXPECT_NO_THROW(place_below(folder_ / "entry", "new/x"));
}

}  // namespace
}  // namespace titan::download
