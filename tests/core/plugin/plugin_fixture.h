// Shared helpers of the tests of plugin loading: places of the built plugins, temporary folders,
// golden texts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <titan/error.h>

#include "core/plugin/manifest.h"
#include "core/plugin/registration.h"
#include "tests/golden.h"

namespace titan::core {

/// The folder of one case of tests/bad_plugins.
inline std::filesystem::path plugin_folder(const std::string& name) {
  return std::filesystem::path(TITAN_TEST_BUILD_DIR) / "bad_plugins" / name;
}

/// The file of a case whose folder and plugin have the same name.
inline std::filesystem::path plugin_file(const std::string& name) {
  return plugin_folder(name) / (name + ".plugin.so");
}

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file << " cannot be read";
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A new folder, removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "titan_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Compares a message to users with tests/golden/errors/<name>.txt. Placeholders replace folders
/// and the hash of the sdk's headers.
inline void expect_golden(const std::string& name, const std::string& message,
                          const std::filesystem::path& folder = {}) {
  std::string text = "error: " + message + "\n";
  text = replaced(text, folder.string(), "<folder>");
  text = replaced(text, (std::filesystem::path(TITAN_TEST_BUILD_DIR) / "bad_plugins").string(),
                  "<plugins>");
  for (const char* abi : {"sdk_abi", "sdk_abi_torch_free"})
    text = replaced(text, std::string(host_manifest().field(abi)), "<sdk_abi>");
  testing::expect_golden_text("errors/" + name + ".txt", text);
}

/// The text of the plugin Error that `action` throws. The test fails when it throws no error or one
/// of another kind.
template <class Action>
std::string plugin_error(Action&& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::plugin) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

/// The text of the error when the plugin file is loaded.
inline std::string load_error(const std::filesystem::path& file) {
  return plugin_error([&] { load_plugin(file, read_manifest(file)); });
}

}  // namespace titan::core
