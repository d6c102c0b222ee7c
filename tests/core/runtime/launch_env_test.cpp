#include "core/runtime/launch_env.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

/// Sets the launcher's variables for one test; null leaves one unset.
class Environment {
 public:
  Environment(const char* rank, const char* world_size, const char* local_rank) {
    set("RANK", rank);
    set("WORLD_SIZE", world_size);
    set("LOCAL_RANK", local_rank);
  }
  ~Environment() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) ::unsetenv(name);
  }

 private:
  static void set(const char* name, const char* value) {
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
};

std::string error_of_detection() {
  try {
    detect_launch();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(LaunchEnv, IsOneProcessWithoutALauncher) {
  const Environment environment(nullptr, nullptr, nullptr);
  const LaunchEnv launch = detect_launch();
  EXPECT_EQ(launch.world_size, 1);
  EXPECT_TRUE(launch.source.empty());
}

TEST(LaunchEnv, ReadsTheVariablesOfTorchrun) {
  const Environment environment("5", "8", "1");
  const LaunchEnv launch = detect_launch();
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_EQ(launch.local_rank, 1);
}

TEST(LaunchEnv, NamesWhatAPartialSetLacks) {
  const Environment environment("0", nullptr, nullptr);
  EXPECT_NE(error_of_detection().find("WORLD_SIZE, LOCAL_RANK not set"), std::string::npos)
      << error_of_detection();
}

TEST(LaunchEnv, RefusesWhatIsNoRank) {
  {
    const Environment environment("one", "2", "0");
    EXPECT_NE(error_of_detection().find("RANK = 'one'"), std::string::npos);
  }
  const Environment environment("2", "2", "0");
  EXPECT_NE(error_of_detection().find("RANK = 2 is not below WORLD_SIZE = 2"), std::string::npos);
}

}  // namespace
}  // namespace titan::core
