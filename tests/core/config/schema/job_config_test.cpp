// The core's schema against the keys and defaults of torchtitan v0.2.2.
#include "core/config/schema/job_config.h"

#include <map>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/config/fake_lookup.h"
#include "core/config/schema/option_table.h"
#include "tests/core/config/reference_defaults.h"

namespace titan::core {
namespace {

const std::set<std::string> kOwn = {"job.watchers",
                                    "checkpoint.local_copies",
                                    "checkpoint.local_folder",
                                    "checkpoint.local_interval",
                                    "plugins.paths",
                                    "plugins.lock",
                                    "plugins.allow_unsigned",
                                    "metrics.loggers",
                                    "compile.graphs",
                                    "profiling.compress_traces",
                                    "metrics.norms",
                                    "metrics.histograms",
                                    "metrics.histogram_freq",
                                    "metrics.peak_flops",
                                    "tokenizer.name",
                                    "device.name",
                                    "lr_scheduler.name",
                                    "loss.name",
                                    "reference.checkpoint",
                                    "chat_template.name",
                                    "parallelism.data_parallel",
                                    "parallelism.tensor_parallel",
                                    "parallelism.pipeline_parallel",
                                    "parallelism.context_parallel",
                                    "parallelism.expert_parallel",
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
                                    "data.too_long",
                                    "data.shuffle",
                                    "data.shuffle_buffer",
                                    "data.timeout",
                                    "debug.fingerprints",
                                    "debug.find_nan",
                                    "debug.detect_anomaly",
                                    "debug.trace_tensors",
                                    "debug.trace_tensors_from",
                                    "debug.trace_tensors_until",
                                    "debug.trace_tensors_every",
                                    "validation.tasks",
                                    "validation.tasks_freq"};

struct Words {
  const char* key;
  std::vector<std::string> words;
};
const Words kEnumerations[] = {
    {"training.dtype", {"float32", "bfloat16", "float64"}},                  // Titan adds float64
    {"training.mixed_precision_param", {"float32", "bfloat16", "float16"}},  // and float16
    {"training.mixed_precision_reduce", {"float32", "bfloat16"}},            // and bfloat16
    {"data.packing", {"concatenate", "best_fit"}},
    {"data.too_long", {"error", "skip", "truncate"}},
    {"parallelism.fsdp_reshard_after_forward", {"default", "always", "never"}},
    {"parallelism.context_parallel_load_balancer", {"headtail", "ptrr"}},
    {"parallelism.context_parallel_rotate_method", {"allgather", "alltoall"}},
    {"parallelism.expert_parallel_comm_backend", {"standard", "deepep"}},
    {"checkpoint.export_dtype", {"float16", "bfloat16", "float32"}},
    {"checkpoint.async_mode", {"disabled", "async", "async_with_pinned_mem"}},
    {"comm.mode", {"default", "fake_backend", "local_tensor"}},
    {"fault_tolerance.process_group", {"gloo", "nccl"}},
    {"fault_tolerance.semi_sync_method", {"local_sgd", "diloco"}},
};

TEST(JobSchema, DefaultsAreThoseOfTheReference) {
  const OptionTable table;
  for (const ReferenceDefault& row : kReferenceDefaults) {
    const KnownOption* known = table.find(split_dotted(row.key));
    ASSERT_NE(known, nullptr) << row.key;
    EXPECT_EQ(known->option->default_value, parse_json(row.default_json)) << row.key;
  }
}

TEST(JobSchema, HasNoKeyThatNeitherTheReferenceNorTitanHas) {
  std::set<std::string> known = kOwn;
  for (const ReferenceDefault& row : kReferenceDefaults) known.insert(row.key);
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
        Range{"parallelism.data_parallel_shard_degree", "-1", "0"},
        Range{"parallelism.tensor_parallel_degree", "1", "-1"},
        Range{"comm.trace_buf_size", "0", "-1"}, Range{"comm.train_timeout_seconds", "1", "0"},
        Range{"validation.steps", "-1", "0"}, Range{"validation.freq", "1", "0"},
        Range{"validation.tasks_freq", "1", "0"}, Range{"debug.seed", "0", "-1"},
        Range{"parallelism.context_parallel_load_balancer", "None", ""}));

}  // namespace
}  // namespace titan::core
