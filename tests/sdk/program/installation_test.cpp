#include <titan/program/installation.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Installation, LibraryPathIsRestoredForOtherPrograms) {
  ::setenv("LD_LIBRARY_PATH", "/torch/lib:/before", 1);
  ::setenv("TITAN_LD_LIBRARY_PATH", "/before", 1);
  restore_library_path();
  EXPECT_STREQ(::getenv("LD_LIBRARY_PATH"), "/before");
  EXPECT_EQ(::getenv("TITAN_LD_LIBRARY_PATH"), nullptr);
  restore_library_path();  // nothing to restore
  EXPECT_STREQ(::getenv("LD_LIBRARY_PATH"), "/before");
  ::setenv("TITAN_LD_LIBRARY_PATH", "", 1);
  restore_library_path();
  EXPECT_EQ(::getenv("LD_LIBRARY_PATH"), nullptr);
}

TEST(Installation, BundledFilesReplaceOnlyMissingOnes) {
  const auto before = std::filesystem::current_path();
  const auto folder =
      std::filesystem::temp_directory_path() / ("titan_bundled_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "tests/assets/corpus");
  std::filesystem::current_path(folder);
  const std::string share = (installation_folder() / "share/titan").string() + "/";
  for (const char* spelled : {"./tests/assets/tokenizer", "tests/assets/tokenizer"})
    EXPECT_EQ(with_bundled_files(spelled), share + "tests/assets/tokenizer");
  EXPECT_EQ(with_bundled_files("train_configs/debug_model.toml"),
            share + "train_configs/debug_model.toml");
  for (const char* kept : {"tests/assets/corpus", "tests/assets/none", "tests/other",
                           "/tests/assets/tokenizer", "", "../x"})
    EXPECT_EQ(with_bundled_files(kept), kept);
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace titan
