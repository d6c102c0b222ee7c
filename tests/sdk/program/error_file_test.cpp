#include <titan/program/error_file.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include <titan/value.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

/// A folder for one test, and the error file that a process leaves in it. Only the first error of a
/// process counts, so each test runs a new process.
class ErrorFile : public ::testing::Test {
 protected:
  ErrorFile() {
    char name[] = "/tmp/titan_error_file_XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ / "attempt_0" / "1" / "error.json";
  }
  ~ErrorFile() override { fs::remove_all(folder_); }

  static void in_a_process(const std::string& variable, const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("TORCHELASTIC_ERROR_FILE", variable.c_str(), 1);
      body();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  Value content() const {
    std::ifstream in(path_, std::ios::binary);
    return parse_json(std::string((std::istreambuf_iterator<char>(in)), {}));
  }

  fs::path folder_, path_;
};

TEST_F(ErrorFile, HoldsTheFormTorchrunReads) {
  in_a_process(path_, [] { write_error_file("cannot read 'a.jsonl'", "step 3, rank 1"); });
  const Value message = content().at("message");
  EXPECT_EQ(message.at("message").as_string(), "cannot read 'a.jsonl'");
  EXPECT_EQ(message.at("extraInfo").at("py_callstack").as_string(),
            "cannot read 'a.jsonl'\n  at step 3, rank 1");
  const int64_t written = std::stoll(message.at("extraInfo").at("timestamp").as_string());
  EXPECT_LE(std::abs(written - static_cast<int64_t>(std::time(nullptr))), 600);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), {}), 1) << "no other file";
  EXPECT_EQ(read_error_file(path_), "cannot read 'a.jsonl'");
}

TEST_F(ErrorFile, KeepsTheFirstErrorOfAProcess) {
  in_a_process(path_, [] {
    write_error_file("first", "");
    write_error_file("second", "");
  });
  EXPECT_EQ(read_error_file(path_), "first");
}

TEST_F(ErrorFile, HoldsUtf8WhateverTheMessageQuotes) {
  in_a_process(path_, [] {
    write_error_file("na\xc3\xafve \xff\xfe \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 \"q\"\n", "");
  });
  EXPECT_EQ(read_error_file(path_), "na\xc3\xafve ?? ?? ??? \xf0\x9f\x98\x80 \"q\"\n");
}

TEST_F(ErrorFile, IsNotWrittenWithoutAVariableOrAPlace) {
  in_a_process("", [] { write_error_file("message", "context"); });
  in_a_process("/proc/titan/error.json", [] { write_error_file("message", "context"); });
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ErrorFile, ReadsAPlainMessageAndNothingElse) {
  const auto read = [&](const char* text) {
    std::ofstream(folder_ / "e.json", std::ios::binary) << text;
    return read_error_file(folder_ / "e.json");
  };
  EXPECT_EQ(read(R"({"message": "plain", "timestamp": "1"})"), "plain");
  for (const char* text : {"", "{", "[]", "3", R"({"message": 3})", R"({"message": {}})"})
    EXPECT_EQ(read(text), "") << text;
  EXPECT_EQ(read_error_file(folder_ / "none.json"), "");
}

}  // namespace
}  // namespace titan
