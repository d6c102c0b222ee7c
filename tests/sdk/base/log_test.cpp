#include <titan/log.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Log, PassesOnNothingThatATerminalActsOn) {
  ::testing::internal::CaptureStderr();
  log::info("from 'a\x1b[2J\u202e\xff'");
  log::warn("no file 'b\n[titan] forged'\n  while c");
  log::error("d\u009b");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex(".*info from 'a.x1b.2J.u202e.xff'\n"
                                      ".*warning no file 'b\n  .titan. forged'\n  while c\n"
                                      ".*error d.u009b\n"));
}

}  // namespace
}  // namespace titan
