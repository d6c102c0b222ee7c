#include "plugins/commands/sweep/sweep_file.h"

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::commands {
namespace {

SweepFile sweep_of(const std::string& text) {
  return parse_sweep_file("folder/lr.toml", text);
}

std::string sweep_error(const std::string& text) {
  try {
    sweep_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SweepFiles, AGridIsTheProductOfItsLists) {
  const SweepFile sweep =
      sweep_of("[[grid]]\na.x = [1, 2]\na.y = ['u', 'v']\n[[grid]]\nb.z = [[1, 2]]\n");
  std::vector<std::string> names;
  for (const SweepCase& one : sweep.cases) names.push_back(one.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"a.x = 1, a.y = u", "a.x = 1, a.y = v", "a.x = 2, a.y = u",
                                      "a.x = 2, a.y = v", "b.z = [1,2]"}));
  EXPECT_EQ(sweep.cases[1].overrides, (std::vector<Override>{{"a.x", 1}, {"a.y", "v"}}));
}

TEST(SweepFiles, HaveDefaults) {
  const SweepFile sweep = sweep_of("config = 'base.toml'\n");
  EXPECT_EQ(sweep.config, "folder/base.toml");
  EXPECT_EQ(sweep.folder, "outputs/lr");
  EXPECT_EQ(sweep.seeds, std::vector<int64_t>{42});
  ASSERT_EQ(sweep.cases.size(), 1u);
  EXPECT_EQ(sweep.cases[0].name, "base");
  EXPECT_EQ(to_text(sweep.metric), "last loss_metrics/global_avg_loss");
}

TEST(SweepFiles, AnErrorNamesTheKeyAndItsPlace) {
  EXPECT_NE(sweep_error("[[grid]]\na.x = 3\n")
                .find("lr.toml:1:1: error: [[grid]] needs a list of "
                      "values for 'a.x', got 3"),
            std::string::npos);
  EXPECT_NE(sweep_error("seeds = [1, 1]\n").find("'seeds' names a seed twice"), std::string::npos);
  EXPECT_NE(sweep_error("seeds = []\n").find("'seeds' must be a list of integers >= 0, got []"),
            std::string::npos);
  EXPECT_NE(
      sweep_error("slurm_options = [\"--time=1\\nrm -r x\"]\n").find("must be a list of texts"),
      std::string::npos);
  EXPECT_NE(
      sweep_error("[fixed]\njob.dump_folder = 'x'\n").find("'job.dump_folder' is set by the sweep"),
      std::string::npos);
  EXPECT_NE(sweep_error("[[case]]\nlr = 3\n").find("'lr' is not section.key"), std::string::npos);
}

TEST(SweepFiles, AGridThatIsTooLargeIsRefused) {
  std::string text = "[[grid]]\n";
  for (int i = 0; i < 5; ++i)
    text += "a.k" + std::to_string(i) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  EXPECT_NE(sweep_error(text).find("[[grid]] makes more than 10000 combinations"),
            std::string::npos);
}

}  // namespace
}  // namespace titan::commands
