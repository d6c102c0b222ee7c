// Rules that involve several keys, each broken once and kept once; and features that are not built
// yet.
#include <ostream>

#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "core/config/schema/option_table.h"
#include "core/config/selection/not_built.h"

namespace titan::core {
namespace {

struct Rule {
  int world_size;
  std::vector<std::string> broken, kept;
  const char* message;  ///< part of the message and the hint
};
void PrintTo(const Rule& rule, std::ostream* out) {
  *out << rule.message;
}
const std::string P = "--parallelism.";

const std::vector<Rule> kRules = {
    // degrees and the world size
    {8,
     {P + "tensor_parallel_degree=3"},
     {P + "tensor_parallel_degree=2"},
     "start 9 ranks or set tensor_parallel_degree = 1"},
    {4,
     {P + "data_parallel_shard_degree=4", P + "tensor_parallel_degree=2"},
     {P + "data_parallel_shard_degree=2", P + "tensor_parallel_degree=2"},
     "shard 4 x replicate 1 x tensor 2 x context 1 x pipeline 1 = 8, but the world size is 4"},
    {4,
     {P + "data_parallel_shard_degree=4", P + "tensor_parallel_degree=2"},
     {},
     "start 8 ranks or set data_parallel_shard_degree = 2"},
    {1,
     {P + "data_parallel_shard_degree=4"},
     {P + "data_parallel_shard_degree=1"},
     "the world size is 1"},
    {2,
     {P + "data_parallel_replicate_degree=9223372036854775807",
      P + "context_parallel_degree=9223372036854775807"},
     {P + "data_parallel_replicate_degree=2"},
     "do not make the world size"},
    // batch and sequence
    {4,
     {"--training.global_batch_size=12"},
     {"--training.global_batch_size=16"},
     "nearest: 8 or 16"},
    {1, {"--training.global_batch_size=1"}, {"--training.global_batch_size=-7"}, "nearest: 2"},
    {1, {"--training.seq_len=63"}, {"--training.seq_len=62"}, "nearest: 62 or 64"},
    {8,
     {P + "context_parallel_degree=2", P + "tensor_parallel_degree=4", "--training.seq_len=24"},
     {P + "context_parallel_degree=2", P + "tensor_parallel_degree=4", "--training.seq_len=32"},
     "tensor_parallel_degree x 2 x context_parallel_degree = 4 x 2 x 2 = 16"},
    {1,
     {"--validation.enable", "--validation.seq_len=7"},
     {"--validation.seq_len=7"},
     "validation.seq_len = 7"},
    {1,
     {"--validation.steps=0"},
     {"--validation.steps=5"},
     "validation.steps must be > 0 or -1, got 0"},
    {1,
     {"--validation.steps=-2"},
     {"--validation.steps=-1"},
     "validation.steps must be > 0 or -1, got -2"},
    {2,
     {P + "context_parallel_degree=2", "--validation.tasks=tasks.toml"},
     {P + "tensor_parallel_degree=2", "--validation.tasks=tasks.toml"},
     "tasks cannot be scored under context parallelism"},
    // experts
    {8,
     {P + "expert_parallel_degree=2", P + "expert_tensor_parallel_degree=4",
      P + "tensor_parallel_degree=2"},
     {P + "expert_parallel_degree=2", P + "expert_tensor_parallel_degree=2",
      P + "tensor_parallel_degree=2"},
     "must be 1 or tensor_parallel_degree = 2"},
    {2,
     {P + "expert_tensor_parallel_degree=2"},
     {P + "expert_tensor_parallel_degree=2", P + "tensor_parallel_degree=2"},
     "must be 1 or tensor_parallel_degree = 1"},
    {4, {P + "expert_parallel_degree=3"}, {P + "expert_parallel_degree=4"}, "experts do not fit"},
    // checkpoints
    {1, {"--checkpoint.keep_latest_k=1"}, {"--checkpoint.keep_latest_k=2"}, "0 keeps all"},
    {1,
     {"--checkpoint.create_seed_checkpoint"},
     {"--checkpoint.create_seed_checkpoint", "--checkpoint.enable"},
     "needs checkpoint.enable = true"},
    {2,
     {"--checkpoint.create_seed_checkpoint", "--checkpoint.enable"},
     {},
     "written by one rank, not by 2"},
    {1,
     {"--checkpoint.enable", "--checkpoint.last_save_in_hf",
      "--checkpoint.no_last_save_model_only"},
     {"--checkpoint.enable", "--checkpoint.last_save_in_hf"},
     "needs checkpoint.last_save_model_only"},
    {1,
     {"--checkpoint.enable", "--checkpoint.initial_load_in_hf",
      "--checkpoint.no_initial_load_model_only"},
     {"--checkpoint.enable", "--checkpoint.initial_load_in_hf"},
     "needs checkpoint.initial_load_model_only"},
    {1,
     {"--checkpoint.enable", "--checkpoint.initial_load_in_hf_quantized"},
     {"--checkpoint.enable", "--checkpoint.initial_load_in_hf",
      "--checkpoint.initial_load_in_hf_quantized"},
     "needs checkpoint.initial_load_in_hf"},
    {1,
     {"--checkpoint.exclude_from_loading=optimizers"},
     {"--checkpoint.exclude_from_loading=optimizer"},
     "checkpoint.exclude_from_loading has an item that must be one of"},
    // updates inside backward
    {1,
     {"--optimizer.early_step_in_backward"},
     {"--optimizer.early_step_in_backward", "--training.max_norm=0"},
     "the gradient norm is never known"},
    {1,
     {"--optimizer.early_step_in_backward", "--training.max_norm=0",
      "--training.mixed_precision_param=float16"},
     {"--optimizer.early_step_in_backward", "--training.max_norm=0"},
     "before float16 overflows are detected"},
    // converters
    {1,
     {"--model.converters=float8,quantize.linear.float8"},
     {"--model.converters=float8"},
     "is named twice"},
    {1, {"--metrics.loggers=console,console"}, {"--metrics.loggers=console"}, "is named twice"},
    // pipelines
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_microbatch_size=3"},
     {P + "pipeline_parallel_degree=2"},
     "does not divide training.local_batch_size = 2"},
    {4,
     {P + "pipeline_parallel_degree=4"},
     {P + "pipeline_parallel_degree=4", "--training.local_batch_size=4"},
     "'1F1B' needs as many microbatches as stages, but there are 2 microbatches for 4 stages"},
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=3"},
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=4"},
     "has 3 stages"},
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=2"},
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=2",
      P + "pipeline_parallel_schedule=Interleaved1F1B", "--training.local_batch_size=4"},
     "exactly 1 stage per rank, but there are 2"},
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=4",
      P + "pipeline_parallel_schedule=zbvzerobubble"},
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_schedule=ZBVZeroBubble"},
     "'ZBVZeroBubble' needs exactly 2 stages"},
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_layers_per_stage=4",
      P + "pipeline_parallel_schedule=LoopedBFS"},
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_schedule=LoopedBFS"},
     "at least 2 stages"},
    {2,
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_schedule=Interleaved1F1B",
      "--training.local_batch_size=5"},
     {P + "pipeline_parallel_degree=2", P + "pipeline_parallel_schedule=Interleaved1F1B",
      "--training.local_batch_size=6"},
     "runs in 2 rounds, whose number does not divide 5"},
    {1, {P + "pipeline_parallel_schedule_csv=/nowhere.csv"}, {}, "there is no file '/nowhere.csv'"},
    {1,
     {P + "pipeline_parallel_schedule=2F2B"},
     {P + "pipeline_parallel_schedule=gpipe"},
     "unknown pipeline_schedule '2F2B'"},
};

std::string errors(const std::vector<std::string>& arguments, int world_size) {
  std::string text;
  for (const Diagnostic& d : diagnostics_of(kBase, arguments, world_size).sorted())
    if (d.severity == Severity::error) text += d.message + " | " + d.hint + "\n";
  return text;
}

class CrossRule : public ::testing::TestWithParam<Rule> {};

TEST_P(CrossRule, IsHeld) {
  const Rule& rule = GetParam();
  const std::string broken = errors(rule.broken, rule.world_size);
  EXPECT_NE(broken.find(rule.message), std::string::npos) << broken;
  EXPECT_EQ(errors(rule.kept, rule.world_size), "");
}
INSTANTIATE_TEST_SUITE_P(Rules, CrossRule, ::testing::ValuesIn(kRules));

TEST(CrossRules, SpeakOnlyOfKeysThatAreSoundThemselves) {
  const auto found =
      messages(diagnostics_of(kBase, {"--training.seq_len=x", "--training.global_batch_size=0.5"}),
               Severity::error);
  EXPECT_EQ(found.size(), 2u);
}

TEST(CrossRules, KeysWithoutEffectWarn) {
  const auto found = messages(
      diagnostics_of(kBase, {"--experimental.custom_import=x", "--job.custom_config_module=y",
                             "--experimental.custom_args_module=z", "--training.gc_freq=5",
                             "--training.gc_debug"}),
      Severity::warning);
  EXPECT_EQ(found.size(), 3u);
}

TEST(CrossRules, WhatARunBeginsWithNeedsCheckpoints) {
  for (const std::string flag : {"--checkpoint.initial_load_path=/",
                                 "--checkpoint.initial_load_in_hf", "--checkpoint.load_step=3"}) {
    const std::string key = flag.substr(2, flag.find('=') - 2);
    EXPECT_EQ(messages(diagnostics_of(kBase, {flag}), Severity::error),
              std::vector<std::string>{key + " would not be read: checkpoint.enable = false"});
    EXPECT_EQ(messages(diagnostics_of(kBase, {"--checkpoint.enable", flag}), Severity::error),
              std::vector<std::string>());
  }
}

/// An error points at the source that was given last, where a reader looks first.
TEST(CrossRules, PointAtTheFlagThatBreaksThem) {
  const std::string whole = kBase + "[checkpoint]\nenable = true\nload_step = 3\n" +
                            "[optimizer]\nearly_step_in_backward = true\n";
  const auto place_of = [](const std::string& toml, const std::vector<std::string>& flags,
                           const std::string& part) -> std::string {
    for (const Diagnostic& found : diagnostics_of(toml, flags).sorted())
      if (found.message.find(part) != std::string::npos) return found.where.to_string();
    return "not reported";
  };
  EXPECT_EQ(place_of(whole, {"--checkpoint.enable=false"}, "would not be read"), "command line");
  EXPECT_EQ(place_of(whole, {"--training.max_norm=1"}, "cannot be clipped"), "command line");
  // a key that no flag sets, and a flag that is wrong on its own
  EXPECT_EQ(place_of(kBase + "[checkpoint]\nload_step = 3\n", {}, "would not be read"),
            "train.toml:8:13");
  EXPECT_EQ(place_of(kBase, {"--checkpoint.load_step=3"}, "would not be read"), "command line");
}

/// The proposed values are valid themselves: a model that fits 8 ranks of tensor parallelism need
/// not fit 60.
TEST(CrossRules, WhatIsProposedForTheDegreesKeepsTheOtherRules) {
  const std::string tensor = "--parallelism.tensor_parallel_degree=";
  const auto report = [](const std::vector<std::string>& flags, int ranks) {
    return diagnostics_of(kBase, flags, ranks).report();
  };
  const std::string of_60 = report({tensor + "8"}, 60);
  EXPECT_NE(of_60.find("start 56 or 64 ranks or set tensor_parallel_degree = 4"), std::string::npos)
      << of_60;
  // 4 ranks for each of 2 sequences on 3 data-parallel ranks would need a step of 6 sequences
  const std::string of_batch = report({tensor + "4", "--training.global_batch_size=8"}, 6);
  EXPECT_NE(of_batch.find("start 4 or 8 ranks"), std::string::npos) << of_batch;
  EXPECT_EQ(of_batch.find("set tensor_parallel_degree"), std::string::npos) << of_batch;
}

class NotBuilt : public ::testing::TestWithParam<const char*> {};

TEST_P(NotBuilt, IsAnErrorOfItsOwnKind) {
  const Diagnostics found = diagnostics_of(
      kBase, {std::string("--") + GetParam(), "--parallelism.data_parallel_shard_degree=-1"}, 1);
  for (const std::string& text : messages(found, Severity::error))
    EXPECT_NE(text.find("do not make the world size"), std::string::npos) << text;
  EXPECT_GE(found.count(Severity::not_built), 1);
  EXPECT_FALSE(found.can_start());
  EXPECT_NE(messages(found, Severity::not_built).front().find("not built yet"), std::string::npos);
  EXPECT_NE(found.report().find("not built yet; nothing was started"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Keys, NotBuilt,
                         ::testing::Values("comm.mode=local_tensor", "debug.moe_force_load_balance",
                                           "model.name=flux"));

TEST(NotBuiltTable, HarmlessKeysOfSwitchedOffFeaturesAreAccepted) {
  EXPECT_EQ(errors_of(kBase, {"--checkpoint.interval=5", "--checkpoint.load_only",
                              "--checkpoint.async_mode=async",
                              "--checkpoint.exclude_from_loading=optimizer",
                              "--profiling.profile_freq=1", "--validation.freq=3",
                              "--quantize.linear.float8.emulate", "--fault_tolerance.group_size=2",
                              "--parallelism.data_parallel_shard_degree=-1",
                              "--activation_checkpoint.mode=none", "--compile.components=model"}),
            "");
}

}  // namespace
}  // namespace titan::core
