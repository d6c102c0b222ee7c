#include "core/estimate/memory_limit.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/units.h>

#include "core/estimate/gpu_memory.h"
#include "core/estimate/simulated_step.h"

namespace titan::core {
namespace {

constexpr const char* kOption = "kept_bytes";
constexpr int kMostTries = 8;

std::string in_gib(int64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f GiB", static_cast<double>(bytes) / kGiB);
  return text;
}

/// The first rank of the same pipeline rank: it holds the largest shards.
int representative(const JobConfig& config, int rank) {
  const int ranks_per_stage = config.world_size / static_cast<int>(config.layout.pipeline);
  return rank / ranks_per_stage * ranks_per_stage;
}

int64_t peak_of(const JobConfig& config, Registry& registry, int rank) {
  const log::Quiet quiet;
  const std::unique_ptr<Run> run = assemble_simulated(config, registry, rank);
  return simulate_step(*run, config).peak.bytes.total() + library_bytes(config);
}

}  // namespace

void fit_memory_limit(JobConfig& config, Registry& registry, int rank) {
  if (!config.activation_checkpoint.memory_limit) return;
  const int64_t limit = config.activation_checkpoint.memory_limit->count;
  const auto chosen =
      std::find_if(config.transforms.begin(), config.transforms.end(),
                   [](const Selection& s) { return s.kind == "activation_checkpoint"; });
  TITAN_CHECK(chosen != config.transforms.end() && chosen->options.find(kOption), config,
              "activation_checkpoint.memory_limit has no effect with activation_checkpoint.mode = "
              "\"",
              config.activation_checkpoint.mode, "\"; set mode = \"memory_budget\"");
  const int simulated = representative(config, rank);
  const auto peak_keeping = [&](int64_t bytes) {
    chosen->options[kOption] = bytes;
    return peak_of(config, registry, simulated);
  };

  JobConfig keeps_all = config;
  keeps_all.transforms.erase(keeps_all.transforms.begin() + (chosen - config.transforms.begin()));
  const int64_t most = peak_of(keeps_all, registry, simulated);
  if (most <= limit) {
    config.transforms.erase(chosen);
    log::info("activation_checkpoint.memory_limit: everything fits without recomputation, " +
              in_gib(most) + " of " + in_gib(limit));
    return;
  }
  const int64_t least = peak_keeping(0);
  TITAN_CHECK(least <= limit, config, "activation_checkpoint.memory_limit = ", in_gib(limit),
              " is not enough: with every block recomputed this rank still needs ", in_gib(least),
              "; without recomputation ", in_gib(most),
              ". Lower training.local_batch_size or training.seq_len, or use more ranks "
              "('titan estimate' shows the memory by use)");

  // bisects between a value that fits and one that does not
  int64_t fits = 0, too_much = most - least, peak = least;
  if (const int64_t all = peak_keeping(too_much); all <= limit) {
    fits = too_much;
    peak = all;
  }
  for (int i = 0; i < kMostTries && fits < too_much; ++i) {
    const int64_t tried = fits + (too_much - fits + 1) / 2;
    const int64_t its_peak = peak_keeping(tried);
    if (its_peak <= limit) {
      fits = tried;
      peak = its_peak;
    } else {
      too_much = tried;
    }
  }
  chosen->options[kOption] = fits;
  log::info("activation_checkpoint.memory_limit: this rank needs " + in_gib(peak) + " of " +
            in_gib(limit) + "; " + in_gib(least) + " if every block is recomputed, " +
            in_gib(most) + " if none is");
}

}  // namespace titan::core
