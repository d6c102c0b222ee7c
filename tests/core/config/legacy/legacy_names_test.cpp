// Each row of the table of old key names: accepted values, the new key, and the one warning.
#include "core/config/legacy/legacy_names.h"

#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"

namespace titan::core {
namespace {

/// An old assignment and its result in the resolved configuration ("" = no effect).
struct OldRow {
  const char* old_key;
  const char* toml;
  const char* new_key;
  const char* resolved_json;
};
void PrintTo(const OldRow& row, std::ostream* out) {
  *out << row.old_key << " = " << row.toml;
}
const OldRow kRows[] = {
    {"job.use_for_integration_test", "true", "", ""},
    {"metrics.rank_0_only", "false", "metrics.save_for_all_ranks", "true"},
    {"metrics.enable_color_printing", "true", "metrics.disable_color_printing", "false"},
    {"metrics.enable_color_printing", "false", "metrics.disable_color_printing", "true"},
    {"model.norm_type", "\"fused_rmsnorm\"", "", ""},
    {"model.norm_type", "\"compiled_rmsnorm\"", "", ""},
    {"model.tokenizer_path", "\"./\"", "model.hf_assets_path", "\"./\""},
    {"model.use_flex_attn", "false", "model.flavor", "\"debugmodel\""},
    {"model.attn_mask_type", "\"causal\"", "model.flavor", "\"debugmodel\""},
    {"model.compile", "true", "compile.enable", "true"},
    {"optimizer.fused", "true", "optimizer.implementation", "\"fused\""},
    {"optimizer.fused", "false", "optimizer.implementation", "\"foreach\""},
    {"lr_scheduler.lr_min", "0.1", "lr_scheduler.min_lr_factor", "0.1"},
    {"training.batch_size", "4", "training.local_batch_size", "4"},
    {"training.warmup_steps", "3", "lr_scheduler.warmup_steps", "3"},
    {"training.data_parallel_replicate_degree", "1", "parallelism.data_parallel_replicate_degree",
     "1"},
    {"training.data_parallel_shard_degree", "-1", "parallelism.data_parallel_shard_degree", "-1"},
    {"training.data_parallel_degree", "1", "parallelism.data_parallel_shard_degree", "1"},
    {"training.data_parallel_type", "\"fsdp\"", "", ""},
    {"training.data_parallel_type", "\"ddp\"", "parallelism.data_parallel_shard_degree", "1"},
    {"training.tensor_parallel_degree", "1", "parallelism.tensor_parallel_degree", "1"},
    {"training.enable_loss_parallel", "true", "parallelism.disable_loss_parallel", "false"},
    {"training.enable_loss_parallel", "false", "parallelism.disable_loss_parallel", "true"},
    {"training.enable_async_tensor_parallel", "false", "parallelism.enable_async_tensor_parallel",
     "false"},
    {"training.pipeline_parallel_degree", "1", "parallelism.pipeline_parallel_degree", "1"},
    {"training.context_parallel_degree", "1", "parallelism.context_parallel_degree", "1"},
    {"training.compile", "true", "compile.enable", "true"},
    {"training.enable_compile", "true", "compile.enable", "true"},
    {"training.enable_fp8_linear", "true", "model.converters", "[\"quantize.linear.float8\"]"},
    {"training.enable_fp8_linear", "false", "model.converters", "[]"},
    {"training.fp8_linear", "\"dynamic\"", "model.converters", "[\"quantize.linear.float8\"]"},
    {"training.fp8_linear", "\"\"", "model.converters", "[]"},
    {"training.enable_fsdp_fp8_all_gather", "true",
     "quantize.linear.float8.enable_fsdp_float8_all_gather", "true"},
    {"training.precompute_float8_dynamic_scale_for_fsdp", "true",
     "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "true"},
    {"training.seed", "42", "debug.seed", "42"},
    {"training.deterministic", "true", "debug.deterministic", "true"},
    {"experimental.pipeline_parallel_degree", "1", "parallelism.pipeline_parallel_degree", "1"},
    {"experimental.pipeline_parallel_schedule", "\"1f1b\"",
     "parallelism.pipeline_parallel_schedule", "\"1F1B\""},
    {"experimental.pipeline_parallel_schedule", "\"gpipe\"",
     "parallelism.pipeline_parallel_schedule", "\"GPipe\""},
    {"experimental.pipeline_parallel_schedule", "\"interleaved_1f1b\"",
     "parallelism.pipeline_parallel_schedule", "\"Interleaved1F1B\""},
    {"experimental.pipeline_parallel_schedule", "\"flexible_interleaved_1f1b\"",
     "parallelism.pipeline_parallel_schedule", "\"Interleaved1F1B\""},
    {"experimental.pipeline_parallel_schedule_csv", "\"\"",
     "parallelism.pipeline_parallel_schedule_csv", "\"\""},
    {"experimental.pipeline_parallel_split_points", "[\"layers.2\", \"layers.5\"]",
     "parallelism.module_fqns_per_model_part",
     R"([["tok_embeddings","layers.0","layers.1"],["layers.2","layers.3","layers.4"],["layers.5","norm","output"]])"},
    {"parallelism.pipeline_parallel_split_points", "[\"layers.5\"]",
     "parallelism.module_fqns_per_model_part",
     R"([["tok_embeddings","layers.0","layers.1","layers.2","layers.3","layers.4"],["layers.5","norm","output"]])"},
    {"experimental.pipeline_parallel_microbatches", "4",
     "parallelism.pipeline_parallel_microbatch_size", "2"},
    {"experimental.context_parallel_degree", "1", "parallelism.context_parallel_degree", "1"},
    {"experimental.context_parallel_rotate_method", "\"alltoall\"",
     "parallelism.context_parallel_rotate_method", "\"alltoall\""},
    {"experimental.enable_async_tensor_parallel", "false",
     "parallelism.enable_async_tensor_parallel", "false"},
    {"checkpoint.enable_checkpoint", "true", "checkpoint.enable", "true"},
    {"checkpoint.interval_type", "\"steps\"", "", ""},
    {"checkpoint.model_weights_only", "false", "checkpoint.last_save_model_only", "false"},
    {"checkpoint.last_save_model_weights_only", "false", "checkpoint.last_save_model_only",
     "false"},
    {"checkpoint.initial_load_model_weights_only", "false", "checkpoint.initial_load_model_only",
     "false"},
    {"float8.enable_float8_linear", "true", "model.converters", "[\"quantize.linear.float8\"]"},
    {"float8.enable_fsdp_float8_all_gather", "true",
     "quantize.linear.float8.enable_fsdp_float8_all_gather", "true"},
    {"float8.precompute_float8_dynamic_scale_for_fsdp", "true",
     "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "true"},
    {"float8.recipe_name", "\"rowwise\"", "quantize.linear.float8.recipe_name", "\"rowwise\""},
    {"float8.filter_fqns", "[\"output\"]", "quantize.linear.float8.filter_fqns", "[\"output\"]"},
    {"float8.emulate", "true", "quantize.linear.float8.emulate", "true"},
    {"float8.force_recompute_fp8_weight_in_bwd", "true", "", ""},
    {"float8.scaling_type_input", "\"dynamic\"", "", ""},
    {"float8.scaling_type_weight", "\"delayed\"", "", ""},
    {"float8.scaling_type_grad_output", "\"dynamic\"", "", ""},
    {"float8.moe_fqns", "[\"experts\"]", "quantize.grouped_mm.float8.fqns", "[\"experts\"]"},
    {"float8.moe_fqns_prototype", "\"a, b\"", "quantize.grouped_mm.float8.fqns", "[\"a\",\"b\"]"},
    {"mx.recipe_name", "\"mxfp8\"", "quantize.linear.mx.recipe_name", "\"mxfp8_cublas\""},
    {"mx.filter_fqns", "[\"a\"]", "quantize.linear.mx.filter_fqns", "[\"a\"]"},
    {"mx.mxfp8_dim1_cast_kernel_choice", "\"cuda\"",
     "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", "\"cuda\""},
    {"mx.moe_fqns_prototype", "[\"a\"]", "quantize.grouped_mm.mx.fqns", "[\"a\"]"},
    {"mxfp8.recipe_name", "\"mxfp8_emulated\"", "quantize.linear.mx.recipe_name",
     "\"mxfp8_emulated\""},
    {"mxfp8.filter_fqns", "[\"a\"]", "quantize.linear.mx.filter_fqns", "[\"a\"]"},
    {"mxfp8.mxfp8_dim1_cast_kernel_choice", "\"torch\"",
     "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", "\"torch\""},
    {"mxfp8.moe_fqns_prototype", "[\"a\"]", "quantize.grouped_mm.mx.fqns", "[\"a\"]"},
    {"memory_estimation.enabled", "true", "memory_estimation.enable", "true"},
};
/// Old names that are errors.
const OldRow kRefused[] = {
    {"training.warmup_pct", "0.1", "lr_scheduler", ""},
    {"training.decay_steps", "5", "lr_scheduler", ""},
    {"training.decay_ratio", "0.1", "lr_scheduler", ""},
    {"training.decay_type", "\"linear\"", "lr_scheduler", ""},
    {"model.norm_type", "\"layernorm\"", "RMSNorm only", ""},
    {"model.norm_type", "\"np_layernorm\"", "RMSNorm only", ""},
    {"checkpoint.interval_type", "\"seconds\"", "checkpoint.interval is counted in steps", ""},
    {"training.data_parallel_type", "\"pipeline\"", "[parallelism]", ""},
    {"experimental.pipeline_parallel_split_points", "[\"layers.9\"]", "layers.9", ""},
    {"experimental.pipeline_parallel_split_points", "[\"layers.3\", \"layers.2\"]", "layers.2", ""},
    {"experimental.pipeline_parallel_microbatches", "3", "does not divide", ""},
    {"experimental.pipeline_parallel_microbatches", "0", "does not divide", ""},
    {"model.attn_mask_type", "\"diagonal\"", "block_causal", ""},
    {"model.use_flex_attn", "1", "must be of type boolean", ""},
    {"training.batch_size", "\"x\"", "must be an integer", ""},
};

/// A job with one more assignment, as `section.key = value` at the top.
std::string with(const OldRow& row) {
  return std::string(row.old_key) + " = " + row.toml + "\n" +
         "training.dataset = \"jsonl\"\ntraining.seq_len = 64\n" +
         (std::string_view(row.old_key) == "model.tokenizer_path"
              ? ""
              : "model.hf_assets_path = \".\"\n");
}

/// Arguments that choose the converter whose option the new name is.
std::vector<std::string> choosing(const OldRow& row) {
  const std::string key = row.new_key;
  if (!key.starts_with("quantize.")) return {};
  return {"--model.converters", key.substr(0, key.rfind('.'))};
}

Value at(const Value& resolved, const std::string& key) {
  Value place = resolved;
  for (const std::string& part : split_dotted(key)) place = Value(place.at(part));
  return place;
}

class OldName : public ::testing::TestWithParam<OldRow> {};

TEST_P(OldName, IsAcceptedAndTranslatedWithOneWarning) {
  const OldRow& row = GetParam();
  FakeLookup lookup;
  Diagnostics diagnostics;
  const auto config =
      try_resolve(read_sources("train.toml", with(row), choosing(row)), lookup, {}, diagnostics);
  ASSERT_TRUE(config) << diagnostics.report();
  if (*row.new_key) {
    EXPECT_EQ(at(config->resolved, row.new_key), parse_json(row.resolved_json)) << row.old_key;
  }

  int warnings = 0;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) {
    if (diagnostic.message.find("'" + std::string(row.old_key) + "'") == std::string::npos)
      continue;
    EXPECT_EQ(diagnostic.severity, Severity::warning);
    EXPECT_EQ(diagnostic.where.line, 1);
    if (*row.new_key)
      EXPECT_NE(diagnostic.message.find(row.new_key), std::string::npos) << diagnostic.message;
    else
      EXPECT_NE(diagnostic.message.find("has no effect"), std::string::npos) << diagnostic.message;
    ++warnings;
  }
  EXPECT_EQ(warnings, 1);
}
INSTANTIATE_TEST_SUITE_P(Rows, OldName, ::testing::ValuesIn(kRows));

class RefusedOldName : public ::testing::TestWithParam<OldRow> {};

TEST_P(RefusedOldName, IsAnErrorThatSaysWhatToDo) {
  const OldRow& row = GetParam();
  const std::string report = errors_of(with(row));
  EXPECT_NE(report.find("train.toml:1:"), std::string::npos) << report;
  EXPECT_NE(report.find(row.new_key), std::string::npos) << report;
}
INSTANTIATE_TEST_SUITE_P(Rows, RefusedOldName, ::testing::ValuesIn(kRefused));

TEST(OldNames, EveryRowOfTheTableIsTested) {
  std::set<std::string> tested;
  for (const OldRow& row : kRows) tested.insert(row.old_key);
  for (const OldRow& row : kRefused) tested.insert(row.old_key);
  for (const titan::core::OldName& name : old_names())
    EXPECT_TRUE(tested.contains(std::string(name.old_key))) << name.old_key;
}

TEST(OldNames, NewNamesOfTheCoreExist) {
  const OptionTable table;
  for (const titan::core::OldName& name : old_names()) {
    const KeyPath path = split_dotted(name.new_key);
    const bool is_of_component =
        path.front() == "lr_scheduler" || path.front() == "optimizer" || path.front() == "quantize";
    EXPECT_TRUE(name.new_key.empty() || is_of_component || table.find(path)) << name.new_key;
    EXPECT_FALSE(table.find(split_dotted(name.old_key))) << name.old_key << " is a current name";
  }
}

TEST(OldNames, OldAndNewMustAgree) {
  const std::string report =
      errors_of(kBase, {"--training.batch_size", "4", "--training.local_batch_size=8"});
  EXPECT_NE(
      report.find("'training.batch_size' and 'training.local_batch_size' are both set and differ"),
      std::string::npos)
      << report;
  EXPECT_EQ(errors_of(kBase, {"--training.batch_size", "4", "--training.local_batch_size=4"}), "");
}

TEST(OldNames, TwoOldNamesMustAgreeToo) {
  EXPECT_NE(errors_of("[training]\ncompile = true\nenable_compile = false\n")
                .find("are both set and differ"),
            std::string::npos);
}

TEST(OldNames, CommandLineOverrulesAnOldNameInTheFile) {
  const auto job =
      resolve_text("training.batch_size = 4\ntraining.dataset = \"jsonl\"\ntraining.seq_len = 64\n",
                   {"--training.local_batch_size", "2"});
  EXPECT_EQ(job.config.training.local_batch_size, 2);
}

TEST(OldNames, ExclusionsAsOneWordAreSplit) {
  const auto job =
      resolve_text(kBase + "[checkpoint]\nexclude_from_loading = \"optimizer, dataloader\"\n");
  EXPECT_EQ(job.config.checkpoint.exclude_from_loading,
            (std::vector<std::string>{"optimizer", "dataloader"}));
}

TEST(OldNames, DdpReplicatesOverAllRanks) {
  FakeLookup lookup;
  for (const char* toml :
       {"training.data_parallel_type = \"ddp\"\n",
        "training.data_parallel_type = \"ddp\"\ntraining.data_parallel_degree = -1\n",
        "training.data_parallel_degree = 8\ntraining.data_parallel_type = \"ddp\"\n"}) {
    Diagnostics diagnostics;
    const auto config = try_resolve(read_sources("train.toml", toml, {"--training.dataset=jsonl"}),
                                    lookup, {.world_size = 8}, diagnostics);
    ASSERT_TRUE(config) << diagnostics.report();
    EXPECT_EQ(config->layout.replicate, 8);
    EXPECT_EQ(config->layout.shard, 1);
  }
}

TEST(OldNames, FlexAttentionChoosesTheFlavorWithMasks) {
  const std::string base = "model.use_flex_attn = true\ntraining.dataset = \"jsonl\"\n";
  EXPECT_EQ(resolve_text(base + "model.flavor = \"8B\"\n").config.model.flavor, "8B_flex");
  const Diagnostics diagnostics = diagnostics_of(base);
  EXPECT_EQ(diagnostics.count(Severity::error), 0);
  EXPECT_EQ(diagnostics.count(Severity::not_built), 1);
}

TEST(OldNames, BlockCausalMasksIsolateDocuments) {
  const auto isolates = [](const std::string& mask) {
    return resolve_text(kBase + "attn_mask_type = \"" + mask + "\"\n")
        .config.data.isolate_documents;
  };
  EXPECT_TRUE(isolates("block_causal"));
  EXPECT_FALSE(isolates("causal"));
  EXPECT_NE(errors_of(kBase + "attn_mask_type = \"sliding\"\n").find("'causal', 'block_causal'"),
            std::string::npos);
}

TEST(OldNames, OldConverterIsAddedOnce) {
  const std::string toml = "model.converters = [\"float8\"]\nfloat8.enable_float8_linear = true\n";
  FakeLookup lookup;
  Diagnostics diagnostics;
  const auto config = try_resolve(read_sources("train.toml", toml, {"--training.dataset=jsonl"}),
                                  lookup, {}, diagnostics);
  ASSERT_TRUE(config) << diagnostics.report();
  EXPECT_EQ(config->model.converters, std::vector<std::string>{"quantize.linear.float8"});
  EXPECT_EQ(messages(diagnostics, Severity::warning)[0],
            "converter 'float8' is an old name; use 'quantize.linear.float8'");
}

TEST(OldNames, UnknownKeyOfAnOldSectionIsAnError) {
  EXPECT_NE(errors_of(kBase + "[float8]\nemulat = true\n").find("unknown key 'emulat' in [float8]"),
            std::string::npos);
  EXPECT_NE(errors_of(kBase + "[float8]\nemulat = true\n").find("did you mean 'emulate'?"),
            std::string::npos);
}

TEST(OldNames, TorchtitansFaultTolerantLlamaIsLlama) {
  const JobConfig config = resolve_arguments({"--model.name=llama3_ft"}).config;
  EXPECT_EQ(config.model.name, "llama3");
  EXPECT_EQ(config.model_plugin.name, "llama3");
}

}  // namespace
}  // namespace titan::core
