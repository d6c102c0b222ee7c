// A new folder for one test, removed afterwards, and functions to read and write its files. Used by
// the plugins' tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace titan::testing {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = ::testing::TempDir() + "/titan_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  TestFolder(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  /// The path of `name` in the folder, as text.
  std::string at(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file, creates missing folders, and returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return at(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    EXPECT_TRUE(in) << "cannot open " << at(name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace titan::testing
