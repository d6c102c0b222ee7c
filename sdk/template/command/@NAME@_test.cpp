// Tests of the command @FULL_NAME@, which is made with its flags as options.
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <titan/command.h>
#include <titan/runs/history_writer.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

class @CLASS@ : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A session of a run that ends after step `last`.
  void write_session(int64_t resumed_step, int64_t last, const std::string& outcome, const std::string& error = "") {
    titan::HistoryWriter history(folder_, titan::Value::map({{"resumed_step", resumed_step}, {"config", titan::Value::map()}}), /*begin=*/1.0);
    history.first_step(resumed_step + 1);
    history.end(last, outcome, error);
  }

  /// What the command prints.
  std::string printed(std::initializer_list<titan::Value::Member> options = {}) {
    const auto command = make<titan::Command>("@FULL_NAME@", options, {.words = {folder_.string()}});
    testing::internal::CaptureStdout();
    EXPECT_EQ(command->run(), 0);
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  }

  const std::filesystem::path folder_ = testing::TempDir() + "@LIBRARY@." + std::to_string(::getpid());
};

TEST_F(@CLASS@, PrintsALineForEachSession) {
  write_session(0, 3, "finished");
  EXPECT_EQ(printed(), "first step  last step  outcome   error\n1           3          finished\n");
}

TEST_F(@CLASS@, AResumedRunHasTwoSessions) {
  write_session(0, 3, "failed", "out of memory");
  write_session(3, 5, "finished");
  EXPECT_NE(printed().find("\n4           5          finished\n"), std::string::npos);
  EXPECT_EQ(printed({{"failed", true}}).find("finished"), std::string::npos);
}

TEST_F(@CLASS@, AFolderWithoutARunIsNamed) {
  const auto command = make<titan::Command>("@FULL_NAME@", {}, {.words = {"no/such/run"}});
  EXPECT_THROW(command->run(), titan::Error);
}

}  // namespace
