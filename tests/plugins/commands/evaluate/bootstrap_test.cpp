// The bootstrap standard error. Python's random module gave the expected numbers.
#include "plugins/commands/evaluate/bootstrap.h"

#include <gtest/gtest.h>

namespace titan::evaluation {
namespace {

TEST(Bootstrap, DrawsWhatPythonDraws) {
  PythonRandom random(0);
  EXPECT_EQ(random.next(), 0.8444218515250481);
  EXPECT_EQ(random.next(), 0.7579544029403025);
  for (int i = 2; i < 699; ++i) random.next();
  EXPECT_EQ(random.next(), 0.05699047999950346);
  EXPECT_EQ(PythonRandom(123456).next(), 0.8056271362589);
}

}  // namespace
}  // namespace titan::evaluation
