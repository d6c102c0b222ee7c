#include "core/estimate/estimate.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"

namespace titan::core {
namespace {

constexpr MemoryUse kUses[] = {MemoryUse::temporary,   MemoryUse::parameters,
                               MemoryUse::gradients,   MemoryUse::optimizer_states,
                               MemoryUse::activations, MemoryUse::communication};

class EstimateTest : public ::testing::Test {
 protected:
  /// The debug job in fp32, overridden by `arguments`.
  JobConfig job(int world_size, std::vector<std::string> arguments) {
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(TITAN_SOURCE_DIR);
    std::vector<std::string> all = {"--job.config_file",
                                    "train_configs/debug_model.toml",
                                    "--comm.mode",
                                    "fake_backend",
                                    "--training.seq_len",
                                    "256",
                                    "--activation_checkpoint.mode",
                                    "none"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const JobSources sources = read_sources(all);
    Resolution resolution = resolve(sources, lookup_, {.world_size = world_size});
    std::filesystem::current_path(before);
    return std::move(resolution.config);
  }
  Estimate simulate(int world_size, std::vector<std::string> arguments) {
    return estimate(job(world_size, std::move(arguments)), registry_);
  }

  Catalog catalog_{std::vector<std::filesystem::path>{TITAN_PLUGIN_DIR}};
  Registry registry_{catalog_};
  RegistryLookup lookup_{catalog_, registry_};
};

TEST_F(EstimateTest, AddsUpAndLeavesNothingBehind) {
  const Estimate result = simulate(1, {});
  const int64_t live = MetaMemory::live().total();
  ASSERT_EQ(result.ranks.size(), 1u);
  const SimulatedStep& step = result.ranks[0].step;
  int64_t total = 0;
  for (const MemoryUse use : kUses) {
    EXPECT_GE(step.peak.bytes[use], 0);
    total += step.peak.bytes[use];
  }
  EXPECT_EQ(step.peak.bytes.total(), total);
  const int64_t bytes = 4 * result.num_parameters;
  EXPECT_EQ(step.parameter_bytes, bytes);
  EXPECT_EQ(step.gradient_bytes, bytes);
  EXPECT_EQ(step.peak.bytes[MemoryUse::parameters], bytes);
  EXPECT_EQ(step.peak.bytes[MemoryUse::optimizer_states], step.optimizer_bytes);
  EXPECT_EQ(step.peak.bytes[MemoryUse::communication], 0);
  EXPECT_GT(step.peak.bytes[MemoryUse::activations], bytes);
  simulate(1, {});
  EXPECT_EQ(MetaMemory::live().total(), live);
}

TEST_F(EstimateTest, AModelWithoutActivationsPeaksInItsUpdateOrLastGradient) {
  const SimulatedStep step = simulate(1, {"--training.seq_len", "8"}).ranks[0].step;
  EXPECT_EQ(step.peak.bytes[MemoryUse::gradients], step.gradient_bytes);
}

TEST_F(EstimateTest, FindsTheStagesOfEachPipelineRank) {
  const Estimate result = simulate(
      2, {"--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule",
          "Interleaved1F1B", "--training.local_batch_size", "4"});
  ASSERT_EQ(result.ranks.size(), 2u);
  int64_t parameters = 0;
  double flops = 0;
  for (const RankEstimate& rank : result.ranks) {
    EXPECT_EQ(rank.rank, rank.pipeline_rank);
    ASSERT_EQ(rank.stages.size(), 2u);
    EXPECT_EQ(rank.stages[0].index, rank.pipeline_rank);
    EXPECT_EQ(rank.stages[1].index, rank.pipeline_rank + 2);
    for (const StageEstimate& stage : rank.stages) {
      parameters += stage.parameters;
      EXPECT_GT(stage.activation_bytes, 0);
    }
    flops += rank.flops;
  }
  EXPECT_EQ(result.ranks[0].stages[0].first_layer, "tok_embeddings");
  EXPECT_EQ(result.ranks[1].stages[1].last_layer, "output");
  EXPECT_EQ(parameters, result.num_parameters);
  const double all =
      result.flops_per_token.causal_half * static_cast<double>(result.tokens_per_step);
  EXPECT_NEAR(flops / all, 1, 1e-9);
}

TEST_F(EstimateTest, CutsOperationsAndStateOverRanks) {
  const Estimate one = simulate(1, {"--training.local_batch_size", "4"});
  const Estimate cut = simulate(4, {"--parallelism.tensor_parallel_degree", "2",
                                    "--parallelism.data_parallel_shard_degree", "2"});
  EXPECT_DOUBLE_EQ(cut.ranks[0].flops, one.ranks[0].flops / 4);
  const double share = static_cast<double>(cut.ranks[0].step.parameter_bytes) /
                       static_cast<double>(one.ranks[0].step.parameter_bytes);
  EXPECT_NEAR(share, 0.25, 0.001);  // norms are sharded over data-parallel ranks only
  EXPECT_GT(cut.ranks[0].step.peak.bytes[MemoryUse::communication], 0);
}

TEST_F(EstimateTest, RecomputationLowersThePeakAndIsCounted) {
  const SimulatedStep kept = simulate(1, {}).ranks[0].step;
  const RankEstimate again = simulate(1, {"--activation_checkpoint.mode", "full"}).ranks[0];
  EXPECT_EQ(kept.recomputed_flops, 0);
  EXPECT_LT(again.step.peak.bytes.total(), kept.peak.bytes.total());
  EXPECT_GT(again.step.recomputed_flops, 0.2 * again.flops);  // a third, without the head
  EXPECT_LT(again.step.recomputed_flops, again.flops / 3);
}

TEST_F(EstimateTest, CountsWorkspacesOfLibrariesForAGpuAlone) {
  const auto found = [&](std::vector<std::string> arguments) {
    return simulate(1, std::move(arguments)).ranks[0];
  };
  const RankEstimate gpu = found({});
  EXPECT_EQ(gpu.library_bytes, int64_t{64} << 20);
  EXPECT_EQ(gpu.peak_bytes(), gpu.step.peak.bytes.total() + gpu.library_bytes);
  const RankEstimate cpu = found({"--comm.mode", "default", "--device.name", "cpu"});
  EXPECT_EQ(cpu.library_bytes, 0);
  EXPECT_EQ(cpu.peak_bytes(), cpu.step.peak.bytes.total());
}

/// All logits of a microbatch fit in a GPU's chunk, in addition to the activations kept by all
/// layers.
TEST_F(EstimateTest, AHeadOfAGpuHasLargerChunks) {
  const std::vector<std::string> longer = {"--training.seq_len", "4096"};
  std::vector<std::string> on_cpu = longer;
  on_cpu.insert(on_cpu.end(), {"--comm.mode", "default", "--device.name", "cpu"});
  const SimulatedStep gpu = simulate(1, longer).ranks[0].step,
                      cpu = simulate(1, on_cpu).ranks[0].step;
  EXPECT_EQ(gpu.peak.place, "forward of output, microbatch 0");
  EXPECT_GT(gpu.peak.bytes.total(), cpu.peak.bytes.total());
  EXPECT_EQ(simulate(1, on_cpu).ranks[0].step.peak.bytes.total(), cpu.peak.bytes.total());
}

/// Copies in flight need the device memory of one block's activations, not of all blocks.
TEST_F(EstimateTest, OffloadHoldsOneBlockWhateverTheirNumber) {
  const auto found = [&](const char* mode) {
    return simulate(1, {"--activation_checkpoint.mode", mode, "--training.seq_len", "2048"})
        .ranks[0];
  };
  const RankEstimate kept = found("none");
  const int64_t blocks = kept.stages[0].activation_bytes;  // of six blocks, and little else
  const int64_t offloaded = found("offload").peak_bytes();
  EXPECT_LT(offloaded, kept.peak_bytes() - blocks / 2);
  EXPECT_LT(offloaded, found("full").peak_bytes() + blocks / 6);
}

TEST_F(EstimateTest, PredictsTimeByItsFormula) {
  const Estimate result = simulate(
      4, {"--parallelism.pipeline_parallel_degree", "4", "--parallelism.pipeline_parallel_schedule",
          "GPipe", "--training.local_batch_size", "8"});
  const MachineSpeed speed{.flops = 1e12, .bandwidth = 1e9};
  const PredictedTime time = predict_time(result, speed);
  EXPECT_NEAR(time.idle_share, 3.0 / 11, 1e-12);  // (P - 1) / (M + P - 1)
  EXPECT_DOUBLE_EQ(time.nothing_hidden,
                   time.compute_seconds / (1 - time.idle_share) + time.traffic_seconds);
  EXPECT_GE(time.all_hidden, time.compute_seconds / (1 - time.idle_share));
  const PredictedTime faster = predict_time(result, {.flops = 2e12, .bandwidth = 2e9});
  EXPECT_DOUBLE_EQ(faster.nothing_hidden, time.nothing_hidden / 2);
}

TEST_F(EstimateTest, WritesWhatItFound) {
  const Estimate result = estimate(job(2, {"--parallelism.pipeline_parallel_degree", "2"}),
                                   registry_, MachineSpeed{1e12, 1e9});
  const Value value = parse_json(to_json(to_value(result)));
  for (size_t i = 0; i < 2; ++i) {
    const Value& rank = value.at("ranks").as_list()[i];
    const SimulatedStep& step = result.ranks[i].step;
    EXPECT_EQ(rank.at("peak_bytes").as_integer(), result.ranks[i].peak_bytes());
    EXPECT_EQ(rank.at("peak_place").as_string(), step.peak.place);
    int64_t total = 0;
    for (const auto& [use, bytes] : rank.at("peak_by_use").as_map()) total += bytes.as_integer();
    EXPECT_EQ(total, result.ranks[i].peak_bytes());
  }
  const std::string text = to_text(result);
  for (const char* part : {"PEAK", "tok_embeddings .. layers.2", "PREDICTED", "causal_half"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace titan::core
