// Flags and positional arguments of commands that plugins add.
#include "core/commands/command_flags.h"

#include <gtest/gtest.h>
#include <titan/command.h>
#include <titan/error.h>

#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

struct CopyOptions {
  double tolerance = 0;
  int64_t most_steps = 10;
  std::optional<std::filesystem::path> output;
  std::vector<std::string> include;
  bool json = false, quiet = false;
};

class Copy final : public titan::Command {
 public:
  static constexpr CommandWords kWords{"RUN [RUN]", 1, 2};
  Copy(const CopyOptions&, const CommandContext&) {}
  int run() override { return 0; }
};

class CommandFlags : public ::testing::Test {
 protected:
  CommandFlags() {
    plugin_.add<Copy>("copy", "two runs")
        .option("tolerance", &CopyOptions::tolerance, "how far apart")
        .at_least(0)
        .option("most_steps", &CopyOptions::most_steps, "how many")
        .between(1, 100)
        .option("output", &CopyOptions::output, "the file")
        .option("include", &CopyOptions::include, "names")
        .option("json", &CopyOptions::json, "for programs")
        .option("quiet", &CopyOptions::quiet, "no progress");
  }
  const Component& command() const { return plugin_.components().front(); }
  CommandInput read(const std::vector<std::string>& arguments) const {
    return read_command_input(command(), arguments);
  }
  std::string mistakes(const std::vector<std::string>& arguments) const {
    return error_of([&] { read(arguments); }).message();
  }

  titan::Plugin plugin_;
};

TEST_F(CommandFlags, AreOptionsWithDashesForUnderscores) {
  const CommandInput input =
      read({"a", "--most-steps", "20", "--tolerance=0.5", "--json", "b", "-q"});
  EXPECT_EQ(input.words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(to_json(input.options),
            R"({"most_steps":20,"tolerance":0.5,"json":true,"quiet":true})");
  const auto options = std::static_pointer_cast<CopyOptions>(command().schema.make(input.options));
  EXPECT_EQ(options->most_steps, 20);
  EXPECT_TRUE(options->json);
  EXPECT_FALSE(options->output);
}

TEST_F(CommandFlags, OutIsOutputWhereThereIsNoOtherOut) {
  EXPECT_EQ(to_json(read({"a", "--out", "x"}).options), R"({"output":"x"})");
  EXPECT_TRUE(holds(mistakes({"a", "--out", "x", "--output", "y"}), "--output is given twice"));
}

TEST_F(CommandFlags, AListTakesAFlagForEachItemAndOthersStandOnce) {
  EXPECT_EQ(to_json(read({"a", "--include", "x", "--include", "y,z"}).options),
            R"({"include":["x","y,z"]})");
  EXPECT_TRUE(holds(mistakes({"a", "--most-steps", "2", "--most-steps", "3"}),
                    "--most-steps is given twice"));
}

TEST_F(CommandFlags, EveryMistakeIsReportedAtOnce) {
  const std::string text = mistakes({"a", "--jsn", "--tolerance", "x", "--most-steps", "101"});
  EXPECT_TRUE(holds(text, "unknown option '--jsn'; did you mean '--json'?"));
  EXPECT_TRUE(holds(text, "--tolerance must be a number >= 0, got 'x'"));
  EXPECT_TRUE(holds(text, "--most-steps must be between 1 and 100, got 101"));
  EXPECT_TRUE(holds(text, "see: titan copy --help"));
}

TEST_F(CommandFlags, WordsAreCounted) {
  EXPECT_TRUE(holds(mistakes({}), "too few arguments; usage: titan copy RUN [RUN] [OPTION]..."));
  EXPECT_TRUE(holds(mistakes({"a", "b", "c"}), "too many arguments: 'c'"));
}

TEST_F(CommandFlags, HelpNamesLimitsAndDefaults) {
  EXPECT_TRUE(read({"--help", "--most-steps", "101"}).wants_help);
  const std::string help = command_help(command());
  EXPECT_TRUE(holds(help, "usage: titan copy RUN [RUN] [OPTION]..."));
  EXPECT_TRUE(holds(help, "two runs"));
  EXPECT_TRUE(holds(help, "--output FILE"));
  EXPECT_TRUE(holds(help, "integer between 1 and 100; default 10"));
}

}  // namespace
}  // namespace titan::core
