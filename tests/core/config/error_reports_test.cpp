// Compares the error reports that users see with golden files.
#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "tests/golden.h"

namespace titan::core {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  testing::expect_golden_text("errors/" + name + ".txt", text + "\n");
}

/// The report of the errors that stop the job.
std::string report(const std::string& toml, std::vector<std::string> arguments = {},
                   int world_size = 1) {
  const std::string text = errors_of(toml, std::move(arguments), world_size);
  EXPECT_NE(text, "") << "the job is valid";
  return text;
}

TEST(ErrorReport, NamesEveryMistakeAtOnce) {
  expect_golden("config_many_mistakes", report(R"(steps = 3
[job]
descripton = "x"
[trainign]
steps = 1
[training]
dataset = "jsonl"
steps = "abc"
lr = 1
[optimizer]
name = "SGD"
momentun = 0.9
lr = -0.1
[model]
name = "lama3"
hf_assets_path = "."
converters = "float8"
[metrics]
loggers = ["consol"]
[dataset.json]
field = "text"
[activation_checkpoint]
mode = "slective"
[training.seq_len]
)",
                                               {"--training.stepz", "3", "--checkpoint.no-enabel",
                                                "--training.global_batch_size=63"}));
}

TEST(ErrorReport, OptionsOfAnOptimizer) {
  expect_golden("config_optimizer_options",
                report(kBase + "[optimizer]\nname = \"SGD\"\nmomentun = 0.9\nlr = -0.1\n"));
}

TEST(ErrorReport, OptionsOfAnotherOptimizer) {
  expect_golden("config_other_optimizer",
                report(kBase + "[optimizer]\nname = \"SGD\"\nbeta1 = 0.9\n",
                       {"--optimizer.weight-decay", "0.1"}));
}

TEST(ErrorReport, CommandLine) {
  expect_golden(
      "config_command_line",
      report(kBase,
             {"--training.step", "3", "--debug.deterministic=maybe", "--checkpoint.enable", "true",
              "--training.steps", "--optimizer.lr", "nan", "--metrics.loggers", "a", "b", "--set",
              "job.description=text", "stray", "--lr_scheduler.decay_type=cosin"}));
}

TEST(ErrorReport, DegreesAndBatches) {
  expect_golden(
      "config_degrees",
      report(kBase + "[parallelism]\ndata_parallel_shard_degree = 4\ntensor_parallel_degree = 2\n",
             {"--training.global_batch_size=13", "--training.seq_len", "70"}, 4));
}

TEST(ErrorReport, FeaturesThatAreNotBuilt) {
  expect_golden("config_not_built",
                report("[training]\ndataset = \"jsonl\"\nmixed_precision_param = "
                       "\"bfloat16\"\n[checkpoint]\nenable = true\n"
                       "[profiling]\nenable_profiling = true\n[model]\nname = \"flux\"\n"
                       "hf_assets_path = \".\"\n",
                       {"--comm.mode=local_tensor"}, 8));
}

TEST(ErrorReport, OldNames) {
  expect_golden("config_old_names",
                report("[training]\ndataset = \"jsonl\"\nbatch_size = 4\nlocal_batch_size = "
                       "8\nwarmup_pct = 0.1\n[model]\n"
                       "hf_assets_path = \".\"\nnorm_type = "
                       "\"layernorm\"\n[checkpoint]\ninterval_type = \"seconds\"\n"
                       "model_weights_only = true\n"));
}

TEST(ErrorReport, Syntax) {
  expect_golden("config_syntax", report("[training]\nsteps = \n[model\n"));
}
TEST(ErrorReport, DuplicateKey) {
  expect_golden("config_duplicate_key", report("[training]\nsteps = 1\nsteps = 2\n"));
}
TEST(ErrorReport, IntegerOverflow) {
  expect_golden("config_integer_overflow", report("[training]\nsteps = 99999999999999999999\n"));
}
TEST(ErrorReport, UnknownNames) {
  expect_golden("config_unknown_names",
                report(kBase + "flavor = \"8b\"\n[optimizer]\nname = \"moun\"\nmomentum = 1\n"
                               "[lr_scheduler]\nname = \"constant\"\n"));
}
TEST(ErrorReport, UntouchedDataset) {
  expect_golden("config_untouched_dataset", report("[model]\nhf_assets_path = \".\"\n"));
}
TEST(ErrorReport, UnusablePlugin) {
  expect_golden("config_unusable_plugin",
                report(kBase + "[optimizer]\nname = \"acme/old\"\nanything = 1\n"));
}

TEST(ErrorReport, HugeValuesAndControlCharactersDoNotReachTheTerminal) {
  const std::string text = report(kBase + "[job]\nprint_config = \"" + std::string(1 << 20, 'x') +
                                  "\"\n[compile]\nenable = \"\\u001b[31m\"\n");
  EXPECT_LT(text.size(), 4000u);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("train.toml:8:16: error: job.print_config must be a boolean, got 'xxx"),
            std::string::npos)
      << text;
}

TEST(ErrorReport, ThousandsOfMistakesAreCountedAndTheFirstShown) {
  std::string toml = kBase + "[debug]\n";
  for (int i = 0; i < 5000; ++i) toml += "wrong_" + std::to_string(i) + " = 1\n";
  const std::string text = report(toml);
  EXPECT_NE(text.find("... and 4800 more"), std::string::npos);
  EXPECT_NE(text.find("\n5000 errors; nothing was started. See: titan train --help"),
            std::string::npos);
}

}  // namespace
}  // namespace titan::core
