// Measurements of a step become torchtitan v0.2.2's scalars. Compared with the test's own clock and
// the definitions of the tags, also on ranks that lost different amounts of time.
#include "core/train/metrics.h"

#include <map>
#include <memory>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/program/clock.h>
#include <titan/step_phase.h>

#include "core/runtime/groups/process_groups.h"
#include "core/train/step/step_tokens.h"
#include "tests/plugins/error_of.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

using LoggedSteps = std::map<int64_t, std::map<std::string, double>>;

/// Stores the scalars in a map that the test owns.
class KeepingLogger final : public Logger {
 public:
  explicit KeepingLogger(LoggedSteps& steps) : steps_(steps) {}
  void start(const RunInfo&) override {}
  void log(int64_t step, std::span<const Scalar> scalars) override {
    for (const Scalar& scalar : scalars) steps_[step][std::string(scalar.tag)] = scalar.value;
  }
  void finish(RunOutcome) noexcept override {}

 private:
  LoggedSteps& steps_;
};

constexpr int64_t kRows = 3, kTokens = 40, kTokensPerStep = 2 * kRows * kTokens;

StepBatches two_microbatches() {
  const Batch batch = {.tokens = at::zeros({kRows, kTokens}, at::kLong)};
  return {.microbatches = {batch, batch},
          .num_valid_tokens = 100,
          .num_local_valid_tokens = 100,
          .num_tokens = kTokensPerStep};
}

/// Work that takes at least `seconds`.
void spend(double seconds) {
  const double begin = monotonic_seconds();
  while (monotonic_seconds() - begin < seconds) {
  }
}

/// Metrics of one rank of `mesh`, with all scalars that they log.
struct Measured {
  Measured(const MetricsOptions& options, const dist::Mesh& mesh)
      : before(monotonic_seconds()),
        metrics(options, mesh, *device, parts, loggers, journal),
        began(monotonic_seconds()) {
    loggers.add("kept", std::make_unique<KeepingLogger>(logged));
  }
  void record(int64_t step, const StepBatches& batches, double loss) {
    record({.number = step, .batches = batches, .loss = {loss}, .norm = 1.5});
  }
  void record(Step step, const TrainState& state = {}) {
    metrics.reduced(step);
    metrics.record(step, state, 1e-3);
    loggers.flush();
  }

  LoggedSteps logged;
  std::unique_ptr<Device> device = testing::make_cpu();
  LossParts parts;
  LoggerSet loggers;
  Journal journal;
  double before;
  Metrics metrics;
  double began;
};

TEST(Metrics, RatesAreTokensAndOperationsOverTheTimeThatPassed) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 2, .flops_per_token = 3e6, .peak_flops = 2e9}, mesh);
  spend(0.1);
  const double least = monotonic_seconds() - run.began;
  run.record(1, two_microbatches(), 2);
  const double most = monotonic_seconds() - run.before;

  std::map<std::string, double>& first = run.logged.at(1);
  EXPECT_GE(first.at("time_metrics/end_to_end(s)"), least);
  EXPECT_LE(first.at("time_metrics/end_to_end(s)"), most);
  EXPECT_GE(first.at("throughput(tps)"), kTokensPerStep / most);
  EXPECT_LE(first.at("throughput(tps)"), kTokensPerStep / least);

  run.record(2, two_microbatches(), 2);
  run.record(3, two_microbatches(), 2);
  run.record(4, two_microbatches(), 2);
  EXPECT_EQ(run.logged.count(3), 0u);
  for (auto& [step, found] : run.logged) {
    const double tps = found.at("throughput(tps)");
    // tokens of a step, over the mean time of the interval's steps
    EXPECT_NEAR(tps * found.at("time_metrics/end_to_end(s)") / kTokensPerStep, 1, 1e-9) << step;
    EXPECT_NEAR(found.at("tflops") / (3e6 * tps / 1e12), 1, 1e-9) << step;
    EXPECT_NEAR(found.at("mfu(%)") / (100 * 3e6 * tps / 2e9), 1, 1e-9) << step;
  }
}

TEST(Metrics, TimeSpentBesideTrainingIsLeftOut) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 1}, mesh);
  spend(0.02);
  const double begin = monotonic_seconds();
  {
    const PhaseScope phase(mesh.recorder(), StepPhase::validation);
    spend(0.05);
  }
  const double beside = monotonic_seconds() - begin;
  const double least = monotonic_seconds() - run.began - beside;
  run.record(1, two_microbatches(), 2);
  const double most = monotonic_seconds() - run.before - 0.05;
  const std::map<std::string, double>& found = run.logged.at(1);
  EXPECT_GE(found.at("time_metrics/end_to_end(s)"), least);
  EXPECT_LE(found.at("time_metrics/end_to_end(s)"), most);
  EXPECT_EQ(found.count("mfu(%)"), 0u) << "the peak is not known";
}

TEST(Metrics, TheTimeOfAStepIsTheSumOfItsParts) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 2, .times_checkpoints = true}, mesh);
  const std::pair<StepPhase, const char*> parts[] = {
      {StepPhase::data, "data_loading"},   {StepPhase::forward, "forward"},
      {StepPhase::backward, "backward"},   {StepPhase::communication, "communication"},
      {StepPhase::optimizer, "optimizer"}, {StepPhase::checkpoint, "checkpoint"},
      {StepPhase::other, "other"}};
  const auto spend_in_all = [&] {
    double seconds = 0;
    for (const auto& [phase, name] : parts) {
      const PhaseScope scope(mesh.recorder(), phase);
      spend(seconds += 0.001);
    }
  };
  run.record(1, two_microbatches(), 2);
  spend_in_all();
  run.record(2, two_microbatches(), 2);
  spend_in_all();
  run.record(3, two_microbatches(), 2);
  spend_in_all();
  run.record(4, two_microbatches(), 2);

  for (const int64_t step : {2, 4}) {
    const std::map<std::string, double>& found = run.logged.at(step);
    double sum = 0, least = 0;
    for (const auto& [phase, name] : parts) {
      const double part = found.at(std::string("time_metrics/") + name + "(s)");
      EXPECT_GE(part, least += 0.001) << name << " of each step up to " << step;
      sum += part;
    }
    EXPECT_NEAR(sum / found.at("time_metrics/end_to_end(s)"), 1, 1e-9) << step;
    EXPECT_NEAR(found.at("time_metrics/data_loading(%)") * found.at("time_metrics/end_to_end(s)"),
                100 * found.at("time_metrics/data_loading(s)"), 1e-9);
  }
}

/// A device whose allocator caches memory.
class CachingDevice final : public Device {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "caches"; }
  MemoryStats memory() const override {
    return {.peak = 1 << 30,
            .total = int64_t{4} << 30,
            .reserved = MemoryStats::Reserved{.peak = 3 << 29, .num_retries = 5, .num_ooms = 6}};
  }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint&) override { return nullptr; }
};

TEST(Metrics, WhatAnAllocatorKeepsIsLoggedWhereItKeepsSome) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 1}, mesh);
  run.record(1, two_microbatches(), 2);
  CachingDevice device;
  Metrics metrics({.log_freq = 1}, mesh, device, run.parts, run.loggers, run.journal);
  metrics.record({.number = 2, .batches = two_microbatches(), .loss = {2}}, {}, 1e-3);
  run.loggers.flush();
  EXPECT_EQ(run.logged.at(1).count("memory/max_reserved(GiB)"), 0u);
  std::map<std::string, double>& found = run.logged.at(2);
  EXPECT_EQ(found.at("memory/max_active(GiB)"), 1);
  EXPECT_EQ(found.at("memory/max_active(%)"), 25);
  EXPECT_EQ(found.at("memory/max_reserved(GiB)"), 1.5);
  EXPECT_EQ(found.at("memory/max_reserved(%)"), 37.5);
  EXPECT_EQ(found.at("memory/num_alloc_retries"), 5);
  EXPECT_EQ(found.at("memory/num_ooms"), 6);
}

TEST(Metrics, RanksOfOneRowOfTokensShareItsThroughput) {
  const dist::Mesh mesh =
      fake_mesh(dist::MeshShape{.pp = 2, .dp_replicate = 2, .dp_shard = 3, .cp = 2, .tp = 4}, 5);
  Measured run({.log_freq = 1, .flops_per_token = 3e6}, mesh);
  spend(0.01);
  run.record(1, two_microbatches(), 2);
  const std::map<std::string, double>& found = run.logged.at(1);
  EXPECT_NEAR(found.at("throughput(tps)") * found.at("time_metrics/end_to_end(s)") * 96,
              kTokensPerStep, 1e-9);
}

TEST(Metrics, TokensAreCountedAsReadAndAsLearned) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 1}, mesh);
  run.record({.number = 1, .batches = two_microbatches(), .loss = {2}},
             {.tokens_seen = 700, .tokens_learned = 300});
  run.loggers.flush();
  EXPECT_EQ(run.logged.at(1).at("n_tokens_seen"), 700);
  EXPECT_EQ(run.logged.at(1).at("n_tokens_learned"), 300);
}

// Padded rows, and ranks with rows of different lengths.
TEST(StepTokens, AreThoseOfAllRanksWithoutPadding) {
  testing::run_ranks({.dp_replicate = 2, .dp_shard = 2, .tp = 2}, [](const dist::Mesh& mesh) {
    StepBatches batches = two_microbatches();
    const int64_t rank = mesh.batch_rank();  // 0 to 3, whose last tokens are padding
    batches.microbatches[0].is_padding =
        at::arange(kTokens).expand({kRows, kTokens}).ge(kTokens - rank);
    batches.num_local_valid_tokens = 10 + rank;
    count_tokens(batches, {&mesh.group("dp")}, c10::kCPU);
    EXPECT_EQ(batches.num_valid_tokens, 4 * 10 + 6);
    EXPECT_EQ(batches.num_tokens, 4 * kTokensPerStep - 6 * kRows);
  });
}

// Each data-parallel rank has its own mean loss and number of valid tokens. Ranks of one cp group
// hold uneven parts of its sum.
TEST(Metrics, LossesAreTheMeanOverAllTokensAndTheLargestOfTheRanks) {
  const double means[] = {2.0, 7.0, 3.0, 5.0};
  const int64_t valid[] = {100, 20, 50, 230};
  double mean = 0;
  for (int i = 0; i < 4; ++i) mean += means[i] * static_cast<double>(valid[i]) / 400;
  testing::run_ranks({.dp_replicate = 2, .dp_shard = 2, .cp = 2}, [&](const dist::Mesh& mesh) {
    const auto row = static_cast<size_t>(mesh.batch_rank());
    StepBatches batches = two_microbatches();
    batches.num_valid_tokens = 400;
    batches.num_local_valid_tokens = valid[row];
    const double share = mesh.group("cp").rank() == 0 ? 0.8 : 0.2;
    Measured run({.log_freq = 1}, mesh);
    run.record(1, batches, share * means[row] * static_cast<double>(valid[row]) / 400);
    const std::map<std::string, double>& found = run.logged.at(1);
    EXPECT_NEAR(found.at("loss_metrics/global_avg_loss"), mean, 1e-6);
    EXPECT_NEAR(found.at("loss_metrics/global_max_loss"), 7, 1e-6);
  });
}

// Ranks of tensor parallelism and pipeline stages hold parts of the sum. One stage has no such
// layer.
TEST(Metrics, AuxiliaryLossesAreSummedOverAllRanks) {
  testing::run_ranks({.pp = 2, .dp_shard = 2}, [&](const dist::Mesh& mesh) {
    Measured run({.log_freq = 1}, mesh);
    Step step{.number = 1, .batches = two_microbatches(), .loss = {2}, .norm = 1.5};
    if (mesh.group("pp").rank() == 1) step.loss.auxiliary = 0.25 + mesh.batch_rank();
    run.record(step);
    run.loggers.flush();
    EXPECT_DOUBLE_EQ(run.logged.at(1).at("loss_metrics/global_avg_auxiliary_loss"), 1.5);
  });
}

TEST(Metrics, AuxiliaryLossesAreShownWhereThereIsOneFromTheFirstStep) {
  const dist::Mesh mesh;
  Measured run({.log_freq = 1}, mesh);
  run.record(1, two_microbatches(), 2);
  EXPECT_EQ(run.logged.at(1).count("loss_metrics/global_avg_auxiliary_loss"), 0u);
  Step late{.number = 2, .batches = two_microbatches(), .loss = {2, 1.0}, .norm = 1.5};
  EXPECT_TRUE(testing::holds(
      testing::error_of([&] { run.record(late); }).message(),
      "a layer has an auxiliary loss in step 2, but none had one in the first step"));
}

}  // namespace
}  // namespace titan::core
