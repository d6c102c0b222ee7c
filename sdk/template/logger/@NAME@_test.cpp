// Tests of the logger @FULL_NAME@, which is made with its options as in a run.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <titan/logger.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

class @CLASS@ : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// One run that logs a gradient norm at `step`.
  void run(int64_t resumed_step, int64_t step, double norm, int rank = 0) {
    const auto logger = make<titan::Logger>("@FULL_NAME@");
    logger->start({.dump_folder = folder_, .resumed_step = resumed_step, .rank = rank});
    logger->log(step, std::vector<titan::Scalar>{{"grad_norm", norm}});
    logger->finish(titan::RunOutcome::finished);
  }

  std::string text() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "@NAME@.csv").rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_ = testing::TempDir() + "@LIBRARY@." + std::to_string(::getpid());
};

TEST_F(@CLASS@, WritesALineForEachNumber) {
  run(0, 1, 0.5);
  EXPECT_EQ(text(), "1,grad_norm,0.5\n");
}

TEST_F(@CLASS@, AResumedRunAppends) {
  run(0, 1, 0.5);
  run(1, 2, 0.25);
  EXPECT_EQ(text(), "1,grad_norm,0.5\n2,grad_norm,0.25\n");
}

TEST_F(@CLASS@, AFreshRunStartsAnew) {
  run(0, 1, 0.5);
  run(0, 1, 0.75);
  EXPECT_EQ(text(), "1,grad_norm,0.75\n");
}

TEST_F(@CLASS@, OnlyTheFirstRankWrites) {
  run(0, 1, 0.5, /*rank=*/1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "@NAME@.csv"));
}

TEST_F(@CLASS@, AFolderThatDoesNotExistIsReported) {
  std::filesystem::remove_all(folder_);
  EXPECT_THROW(run(0, 1, 0.5), titan::Error);
}

}  // namespace
