// Tasks in files, and a tokenizer with readable tokens. Used by the tests of
// plugins/commands/evaluate.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/tokenizer.h>

#include "plugins/commands/evaluate/read_tasks.h"

namespace titan::evaluation {

/// A token is a byte; BOS is 256, EOS 257.
class ScoredTokenizer final : public Tokenizer {
 public:
  explicit ScoredTokenizer(bool has_bos = true) : has_bos_(has_bos) {}
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    for (const char c : utf8) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int32_t> ids) const override {
    return {ids.begin(), ids.end()};
  }
  int64_t vocab_size() const override { return 258; }
  SpecialTokens special_tokens() const override {
    SpecialTokens special;
    if (has_bos_) special.bos = 256;
    special.eos = 257;
    return special;
  }

 private:
  bool has_bos_;
};

class EvaluateFixture : public ::testing::Test {
 protected:
  EvaluateFixture()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("evaluate_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~EvaluateFixture() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::vector<Task> tasks(const std::vector<std::filesystem::path>& paths) const {
    return read_tasks(paths);
  }
  /// The errors of tasks that cannot be read, with paths relative to the folder.
  std::string refusal(const std::vector<std::filesystem::path>& paths) const {
    try {
      read_tasks(paths);
    } catch (const Error& e) {
      std::string text = e.what();
      const std::string prefix = folder_.string() + "/";
      for (size_t at; (at = text.find(prefix)) != text.npos;) text.erase(at, prefix.size());
      return text;
    }
    return "";
  }

  const std::filesystem::path folder_;
};

}  // namespace titan::evaluation
