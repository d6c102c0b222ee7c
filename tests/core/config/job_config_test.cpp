// The core's schema against the keys and defaults of torchtitan v0.2.2, listed here by hand of the
// reference.
#include "core/config/job_config.h"

#include <map>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "core/config/option_table.h"

namespace titan::core {
namespace {

struct Row {
  const char* key;
  const char* default_json;
};
const Row kReference[] = {
    {"job.config_file", R"(null)"},
    {"job.dump_folder", R"("./outputs")"},
    {"job.description", R"("default job")"},
    {"job.print_config", R"(false)"},
    {"job.save_config_file", R"(null)"},
    {"job.custom_config_module", R"("")"},
    {"profiling.enable_profiling", R"(false)"},
    {"profiling.save_traces_folder", R"("profile_traces")"},
    {"profiling.profile_freq", R"(10)"},
    {"profiling.profiler_active", R"(1)"},
    {"profiling.profiler_warmup", R"(3)"},
    {"profiling.enable_memory_snapshot", R"(false)"},
    {"profiling.save_memory_snapshot_folder", R"("memory_snapshot")"},
    {"metrics.log_freq", R"(10)"},
    {"metrics.enable_tensorboard", R"(false)"},
    {"metrics.disable_color_printing", R"(false)"},
    {"metrics.save_tb_folder", R"("tb")"},
    {"metrics.save_for_all_ranks", R"(false)"},
    {"metrics.enable_wandb", R"(false)"},
    {"model.name", R"("llama3")"},
    {"model.flavor", R"("debugmodel")"},
    {"model.hf_assets_path", R"("./tests/assets/tokenizer")"},
    {"model.converters", R"([])"},
    {"model.print_after_conversion", R"(false)"},
    {"optimizer.name", R"("AdamW")"},
    {"optimizer.early_step_in_backward", R"(false)"},
    {"training.dataset", R"("c4_test")"},
    {"training.dataset_path", R"(null)"},
    {"training.local_batch_size", R"(8)"},
    {"training.global_batch_size", R"(-1)"},
    {"training.seq_len", R"(2048)"},
    {"training.max_norm", R"(1.0)"},
    {"training.steps", R"(10000)"},
    {"training.enable_cpu_offload", R"(false)"},
    {"training.dtype", R"("float32")"},
    {"training.mixed_precision_param", R"("bfloat16")"},
    {"training.mixed_precision_reduce", R"("float32")"},
    {"training.gc_freq", R"(50)"},
    {"training.gc_debug", R"(false)"},
    {"training.dataloader.num_workers", R"(0)"},
    {"validation.dataloader.num_workers", R"(0)"},
    {"training.dataloader.persistent_workers", R"(false)"},
    {"validation.dataloader.persistent_workers", R"(false)"},
    {"training.dataloader.pin_memory", R"(false)"},
    {"validation.dataloader.pin_memory", R"(false)"},
    {"training.dataloader.prefetch_factor", R"(null)"},
    {"validation.dataloader.prefetch_factor", R"(null)"},
    {"parallelism.data_parallel_replicate_degree", R"(1)"},
    {"parallelism.data_parallel_shard_degree", R"(-1)"},
    {"parallelism.fsdp_reshard_after_forward", R"("default")"},
    {"parallelism.tensor_parallel_degree", R"(1)"},
    {"parallelism.disable_loss_parallel", R"(false)"},
    {"parallelism.enable_async_tensor_parallel", R"(false)"},
    {"parallelism.pipeline_parallel_degree", R"(1)"},
    {"parallelism.module_fqns_per_model_part", R"(null)"},
    {"parallelism.pipeline_parallel_first_stage_less_layers", R"(1)"},
    {"parallelism.pipeline_parallel_last_stage_less_layers", R"(1)"},
    {"parallelism.pipeline_parallel_layers_per_stage", R"(null)"},
    {"parallelism.pipeline_parallel_schedule", R"("1F1B")"},
    {"parallelism.pipeline_parallel_schedule_csv", R"("")"},
    {"parallelism.pipeline_parallel_microbatch_size", R"(1)"},
    {"parallelism.pipeline_parallel_expert_parallel_overlap", R"(true)"},
    {"parallelism.context_parallel_degree", R"(1)"},
    {"parallelism.context_parallel_load_balancer", R"("headtail")"},
    {"parallelism.context_parallel_rotate_method", R"("allgather")"},
    {"parallelism.expert_parallel_degree", R"(1)"},
    {"parallelism.expert_tensor_parallel_degree", R"(1)"},
    {"parallelism.expert_parallel_comm_backend", R"("standard")"},
    {"checkpoint.enable", R"(false)"},
    {"checkpoint.enable_ft_dataloader_checkpoints", R"(true)"},
    {"checkpoint.folder", R"("checkpoint")"},
    {"checkpoint.interval", R"(500)"},
    {"checkpoint.initial_load_path", R"(null)"},
    {"checkpoint.initial_load_model_only", R"(true)"},
    {"checkpoint.initial_load_in_hf", R"(false)"},
    {"checkpoint.initial_load_in_hf_quantized", R"(false)"},
    {"checkpoint.last_save_model_only", R"(true)"},
    {"checkpoint.last_save_in_hf", R"(false)"},
    {"checkpoint.export_dtype", R"("float32")"},
    {"checkpoint.async_mode", R"("disabled")"},
    {"checkpoint.keep_latest_k", R"(10)"},
    {"checkpoint.load_step", R"(-1)"},
    {"checkpoint.exclude_from_loading", R"([])"},
    {"checkpoint.enable_first_step_checkpoint", R"(false)"},
    {"checkpoint.create_seed_checkpoint", R"(false)"},
    {"checkpoint.load_only", R"(false)"},
    {"activation_checkpoint.mode", R"("selective")"},
    {"activation_checkpoint.selective_ac_option", R"("2")"},
    {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
     R"(["moe.router.gate"])"},
    {"activation_checkpoint.early_stop", R"(false)"},
    {"activation_checkpoint.memory_budget", R"(0.5)"},
    {"activation_checkpoint.visualize_memory_budget_pareto", R"(false)"},
    {"activation_checkpoint.preserve_rng_state", R"(true)"},
    {"activation_checkpoint.determinism_check", R"("default")"},
    {"activation_checkpoint.debug", R"(false)"},
    {"compile.enable", R"(false)"},
    {"compile.components", R"(["model","loss"])"},
    {"compile.backend", R"("inductor")"},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", R"(false)"},
    {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", R"(false)"},
    {"quantize.linear.float8.recipe_name", R"(null)"},
    {"quantize.linear.float8.filter_fqns", R"([])"},
    {"quantize.linear.float8.emulate", R"(false)"},
    {"quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", R"("triton")"},
    {"quantize.linear.mx.recipe_name", R"("mxfp8_cublas")"},
    {"quantize.linear.mx.filter_fqns", R"(["output"])"},
    {"quantize.grouped_mm.float8.fqns", R"([])"},
    {"quantize.grouped_mm.mx.fqns", R"([])"},
    {"quantize.grouped_mm.mx.recipe_name", R"("mxfp8")"},
    {"comm.init_timeout_seconds", R"(300)"},
    {"comm.train_timeout_seconds", R"(100)"},
    {"comm.trace_buf_size", R"(20000)"},
    {"comm.save_traces_folder", R"("comm_traces")"},
    {"comm.save_traces_file_prefix", R"("rank_")"},
    {"comm.mode", R"("default")"},
    {"memory_estimation.enable", R"(false)"},
    {"memory_estimation.disable_fake_mode", R"(false)"},
    {"fault_tolerance.enable", R"(false)"},
    {"fault_tolerance.process_group", R"("gloo")"},
    {"fault_tolerance.process_group_timeout_ms", R"(10000)"},
    {"fault_tolerance.replica_id", R"(0)"},
    {"fault_tolerance.group_size", R"(0)"},
    {"fault_tolerance.min_replica_size", R"(1)"},
    {"fault_tolerance.semi_sync_method", R"(null)"},
    {"experimental.custom_import", R"("")"},
    {"experimental.custom_args_module", R"("")"},
    {"validation.enable", R"(false)"},
    {"validation.dataset", R"("c4_validation")"},
    {"validation.dataset_path", R"(null)"},
    {"validation.local_batch_size", R"(8)"},
    {"validation.seq_len", R"(2048)"},
    {"validation.freq", R"(10)"},
    {"validation.steps", R"(-1)"},
    {"debug.seed", R"(null)"},
    {"debug.deterministic", R"(false)"},
    {"debug.deterministic_warn_only", R"(false)"},
    {"debug.moe_force_load_balance", R"(false)"},
};
const std::set<std::string> kOwn = {"plugins.paths",
                                    "metrics.loggers",
                                    "metrics.peak_flops",
                                    "tokenizer.name",
                                    "device.name",
                                    "lr_scheduler.name",
                                    "parallelism.data_parallel",
                                    "parallelism.tensor_parallel",
                                    "parallelism.pipeline_parallel",
                                    "parallelism.context_parallel",
                                    "parallelism.further",
                                    "activation_checkpoint.memory_limit",
                                    "checkpoint.take_on_trust",
                                    "training.loss_scaling.initial",
                                    "training.loss_scaling.growth_factor",
                                    "training.loss_scaling.backoff_factor",
                                    "training.loss_scaling.growth_interval",
                                    "training.loss_scaling.minimum",
                                    "data.packing",
                                    "data.isolate_documents",
                                    "data.labels_cross_documents",
                                    "data.shuffle",
                                    "data.shuffle_buffer",
                                    "data.timeout",
                                    "debug.fingerprints"};

struct Words {
  const char* key;
  std::vector<std::string> words;
};
const Words kEnumerations[] = {
    {"training.dtype", {"float32", "bfloat16", "float64"}},                  // Titan adds float64
    {"training.mixed_precision_param", {"float32", "bfloat16", "float16"}},  // and float16
    {"training.mixed_precision_reduce", {"float32", "bfloat16"}},            // and bfloat16
    {"data.packing", {"concatenate", "best_fit"}},
    {"parallelism.fsdp_reshard_after_forward", {"default", "always", "never"}},
    {"parallelism.context_parallel_load_balancer", {"headtail", "ptrr"}},
    {"parallelism.context_parallel_rotate_method", {"allgather", "alltoall"}},
    {"parallelism.expert_parallel_comm_backend", {"standard", "deepep"}},
    {"checkpoint.export_dtype", {"float16", "bfloat16", "float32"}},
    {"checkpoint.async_mode", {"disabled", "async", "async_with_pinned_mem"}},
    {"quantize.linear.float8.recipe_name", {"tensorwise", "rowwise", "rowwise_with_gw_hp"}},
    {"quantize.linear.mx.recipe_name",  // v0.2.2 takes any; the last is Titan's
     {"mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated", "mxfp8_emulated_rceil"}},
    {"quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", {"triton", "cuda", "torch"}},
    {"quantize.grouped_mm.mx.recipe_name", {"mxfp8"}},
    {"comm.mode", {"default", "fake_backend", "local_tensor"}},
    {"fault_tolerance.process_group", {"gloo", "nccl"}},
    {"fault_tolerance.semi_sync_method", {"local_sgd", "diloco"}},
};

TEST(JobSchema, DefaultsAreThoseOfTheReference) {
  const OptionTable table;
  for (const Row& row : kReference) {
    const KnownOption* known = table.find(split_dotted(row.key));
    ASSERT_NE(known, nullptr) << row.key;
    EXPECT_EQ(known->option->default_value, parse_json(row.default_json)) << row.key;
  }
}

TEST(JobSchema, HasNoKeyThatNeitherTheReferenceNorTitanHas) {
  std::set<std::string> known = kOwn;
  for (const Row& row : kReference) known.insert(row.key);
  const OptionTable table;
  for (const KnownOption& option : table.options())
    EXPECT_TRUE(known.contains(dotted(option.path))) << dotted(option.path);
  EXPECT_EQ(table.options().size(), known.size());
}

TEST(JobSchema, EnumerationsHaveTheReferencesWords) {
  const OptionTable table;
  for (const Words& row : kEnumerations)
    EXPECT_EQ(table.find(split_dotted(row.key))->option->choices, row.words) << row.key;
}

TEST(JobSchema, EveryOptionHasHelpAndADefaultThatItAccepts) {
  const OptionTable table;
  for (const KnownOption& known : table.options()) {
    EXPECT_FALSE(known.option->help.empty()) << dotted(known.path);
    EXPECT_EQ(known.option->problem(known.option->default_value), std::nullopt)
        << dotted(known.path);
  }
}

TEST(JobSchema, EnumerationsReachTheSections) {
  const JobConfig config =
      resolve_arguments({"--parallelism.fsdp_reshard_after_forward", "never",
                         "--checkpoint.export_dtype", "bfloat16", "--checkpoint.async_mode",
                         "async", "--parallelism.context_parallel_rotate_method=alltoall"})
          .config;
  EXPECT_EQ(config.parallelism.fsdp_reshard_after_forward, ReshardAfterForward::never);
  EXPECT_EQ(config.checkpoint.export_dtype, Dtype::bfloat16);
  EXPECT_EQ(config.checkpoint.async_mode, AsyncMode::async);
  EXPECT_EQ(config.parallelism.context_parallel_rotate_method, RotateMethod::alltoall);
}

/// Each bound from the inside and from the outside.
struct Range {
  const char* key;
  const char* good;
  const char* bad;
};
void PrintTo(const Range& range, std::ostream* out) {
  *out << range.key;
}
class JobSchemaRange : public ::testing::TestWithParam<Range> {};

TEST_P(JobSchemaRange, IsChecked) {
  const auto [key, good, bad] = GetParam();
  EXPECT_EQ(errors_of(kBase, {std::string("--") + key + "=" + good}), "") << key;
  const std::string report = errors_of(kBase, {std::string("--") + key + "=" + bad});
  EXPECT_NE(report.find(std::string(key) + " must"), std::string::npos) << report;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, JobSchemaRange,
    ::testing::Values(
        Range{"training.steps", "1", "0"}, Range{"training.seq_len", "2", "0"},
        Range{"training.local_batch_size", "1", "0"}, Range{"training.max_norm", "0", "-0.1"},
        Range{"training.gc_freq", "1", "0"}, Range{"training.global_batch_size", "-5", "0"},
        Range{"metrics.log_freq", "1", "0"}, Range{"metrics.peak_flops", "1e12", "0"},
        Range{"profiling.profile_freq", "1", "0"}, Range{"profiling.profiler_warmup", "0", "-1"},
        Range{"checkpoint.interval", "1", "0"}, Range{"checkpoint.keep_latest_k", "0", "-1"},
        Range{"checkpoint.load_step", "-1", "-2"},
        Range{"activation_checkpoint.memory_budget", "1", "1.5"},
        Range{"activation_checkpoint.selective_ac_option", "op", "ops"},
        Range{"parallelism.data_parallel_shard_degree", "-1", "0"},
        Range{"parallelism.tensor_parallel_degree", "1", "-1"},
        Range{"comm.trace_buf_size", "0", "-1"}, Range{"comm.train_timeout_seconds", "1", "0"},
        Range{"validation.steps", "-1", "0"}, Range{"validation.freq", "1", "0"},
        Range{"debug.seed", "0", "-1"},
        Range{"parallelism.context_parallel_load_balancer", "None", ""}));

}  // namespace
}  // namespace titan::core
