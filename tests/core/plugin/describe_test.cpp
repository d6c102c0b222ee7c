// The commands that show plugins, through their entry functions.
#include <titan/value.h>

#include "core/commands/command.h"
#include "core/plugin/description.h"
#include "core/plugin/schema_json.h"
#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

struct Outcome {
  int code = 0;
  std::string printed;
  std::string error;
};

/// The output of a command that searches the fixture's sound plugins first.
Outcome run(int (*command)(const std::vector<std::string>&), std::vector<std::string> arguments) {
  Outcome outcome;
  ::testing::internal::CaptureStdout();
  try {
    outcome.code = command(arguments);
  } catch (const Error& e) {
    outcome.code = e.kind() == ErrorKind::config ? kExitConfigError : kExitPluginError;
    outcome.error = e.what();
  }
  outcome.printed = ::testing::internal::GetCapturedStdout();
  return outcome;
}

/// titan describe, without the program's own commands.
int describe(const std::vector<std::string>& arguments) {
  return run_describe(arguments, {});
}

const std::string kSound = plugin_folder("sound").string();

TEST(Describe, ShowsEveryOptionWithDefaultAndLimits) {
  const Outcome outcome = run(describe, {"lr_scheduler", "Ramp", "--path", kSound});
  EXPECT_EQ(outcome.code, kExitDone);
  titan::testing::expect_golden_text("describe_ramp.txt",
                                     replaced(outcome.printed, kSound, "<folder>"));
}

TEST(Describe, ShowsTheFlavorsOfAModelAndWhichAreUnusable) {
  const Outcome outcome = run(describe, {"model", "toy", "--path", kSound});
  EXPECT_EQ(outcome.code, kExitDone);
  EXPECT_NE(outcome.printed.find("abilities HfExchange"), std::string::npos);
  EXPECT_NE(outcome.printed.find("  small  The smallest.\n      dim = 8, layers = 1\n"),
            std::string::npos);
  EXPECT_NE(outcome.printed.find("        unknown option 'dimm'; did you mean 'dim'?"),
            std::string::npos)
      << outcome.printed;
}

TEST(Describe, ListsTheNamesOfAKindWithTheirHelp) {
  const Outcome outcome =
      run(describe, {"lr_scheduler", "--path", kSound, "--path", plugin_folder("throws_int")});
  EXPECT_EQ(outcome.code, kExitDone);
  EXPECT_NE(outcome.printed.find("  Grows with the step.\n"), std::string::npos) << outcome.printed;
  EXPECT_NE(outcome.printed.find("an exception of type int"), std::string::npos) << outcome.printed;
}

TEST(Describe, GivesJsonSchemaOfEveryOptionType) {
  const Outcome outcome = run(describe, {"lr_scheduler", "Ramp", "--json", "--path", kSound});
  EXPECT_EQ(outcome.code, kExitDone);
  const Value schema = parse_json(outcome.printed);
  EXPECT_EQ(schema.at("$schema"), Value("https://json-schema.org/draft/2020-12/schema"));
  EXPECT_EQ(schema.at("type"), Value("object"));
  EXPECT_EQ(schema.at("additionalProperties"), Value(false));
  EXPECT_EQ(schema.at("x-titan-plugin"), Value("sound"));
  const auto property = [&](const char* name) { return schema.at("properties").at(name); };
  EXPECT_EQ(property("start"), Value::map({{"type", "number"},
                                           {"minimum", 0},
                                           {"maximum", 1},
                                           {"description", "Factor at step 0"},
                                           {"default", 0.0}}));
  EXPECT_EQ(property("steps").at("minimum"), Value(1));
  EXPECT_EQ(property("restart").at("type"), Value("boolean"));
  EXPECT_EQ(property("label").at("enum"), Value::list({"ramp", "slope"}));
  EXPECT_EQ(property("shape").at("enum"), Value::list({"linear", "cosine"}));
  EXPECT_EQ(property("table_file").at("x-titan-type"), Value("path"));
  EXPECT_EQ(property("cache").at("type"), Value::list({"integer", "string"}));
  EXPECT_EQ(property("cache").at("exclusiveMinimum"), Value(0));
  EXPECT_EQ(property("pause").at("exclusiveMaximum"), Value(10));
  EXPECT_EQ(property("milestones").at("items"), Value::map({{"type", "integer"}, {"minimum", 1}}));
  EXPECT_EQ(property("unit").at("type"), Value::list({"string", "null"}));
  EXPECT_EQ(property("decay").at("properties").at("floor").at("maximum"), Value(1));
}

TEST(Describe, ASectionOfAJobShowsItsKeys) {
  const std::string text = run(describe, {"validation"}).printed;
  EXPECT_TRUE(text.starts_with("[validation] Validation\n\nkey ")) << text;
  EXPECT_NE(text.find("\ndataloader.num_workers "), std::string::npos) << text;
  const Value json = parse_json(run(describe, {"comm", "--json"}).printed);
  EXPECT_EQ(json.at("properties").at("trace_buf_size").at("default"), Value(20000));
  EXPECT_EQ(run(describe, {"comm", "x"}).error, "[comm] is a section, not a kind of plugin");
}

TEST(Describe, ReportsWrongUse) {
  EXPECT_EQ(run(describe, {}).code, kExitConfigError);
  EXPECT_EQ(
      run(describe, {"lr_schedular"}).error,
      "there is no plugin kind 'lr_schedular'; did you mean 'lr_scheduler'?\n  kinds: model, "
      "flavor, converter, parallelism, pipeline_schedule, activation_checkpoint, "
      "compile_backend, optimizer, "
      "lr_scheduler, loss, dataset, tokenizer, chat_template, logger, watcher, device, command");
  EXPECT_EQ(run(describe, {"model", "--json"}).code, kExitConfigError);
  EXPECT_EQ(run(describe, {"model", "a", "b"}).code, kExitConfigError);
  EXPECT_EQ(run(describe, {"model", "--jso"}).code, kExitConfigError);
  EXPECT_EQ(run(describe, {"model", "toi", "--path", kSound}).code, kExitPluginError);
}

TEST(List, ShowsOneKindAndRefusesAnUnknownOne) {
  const Outcome outcome = run(run_list, {"model", "--files", "--path", kSound});
  EXPECT_EQ(outcome.code, kExitDone);
  EXPECT_NE(outcome.printed.find("  1.0.0    " + plugin_file("sound").string() + "\n"),
            std::string::npos)
      << outcome.printed;
  EXPECT_EQ(run(run_list, {"modle"}).code, kExitConfigError);
  EXPECT_EQ(run(run_list, {"--help"}).code, kExitDone);
}

}  // namespace
}  // namespace titan::core
