// Estimates a run without running it: memory per pipeline rank, FLOPs, traffic and, for given
// machine speeds, a predicted time. Used by `titan estimate` and [memory_estimation].
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include "core/config/schema/job_config.h"
#include "core/estimate/simulated_step.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Speeds of one rank.
struct MachineSpeed {
  double flops = 0;      ///< per second
  double bandwidth = 0;  ///< bytes sent per second
};

/// Time of a step by the formulas of `predict_time`.
struct PredictedTime {
  double compute_seconds = 0;  ///< of the slowest rank, without waiting
  double idle_share = 0;       ///< of that rank's step, from the pipeline schedule
  double traffic_seconds = 0;  ///< of the same rank, without overlap
  double all_hidden = 0;       ///< seconds per step: communication overlaps computation
  double nothing_hidden = 0;   ///< seconds per step: one after the other
};

/// One stage of a pipeline rank; a run without a pipeline has one.
struct StageEstimate {
  int index = 0;
  std::string first_layer, last_layer;
  int64_t parameters = 0;        ///< elements of this rank's shards
  int64_t activation_bytes = 0;  ///< kept from one microbatch's forward to its backward
};

/// The rank of one pipeline stage with coordinate 0 on every other axis, which has the largest
/// shares when sizes do not divide evenly.
struct RankEstimate {
  int rank = 0;  ///< global
  int pipeline_rank = 0;
  std::vector<StageEstimate> stages;
  SimulatedStep step;
  int64_t library_bytes = 0;  ///< of GPU libraries, in addition to the step's tensors
  double flops = 0;  ///< of its step, forward and backward, causal_half, without recomputation

  /// Memory that the device must have.
  int64_t peak_bytes() const { return step.peak.bytes.total() + library_bytes; }
  /// The same if all tokens go to the experts of one rank; nothing for a model without experts.
  std::optional<int64_t> uneven_peak_bytes() const {
    if (!step.uneven_peak) return std::nullopt;
    return step.uneven_peak->bytes.total() + library_bytes;
  }
};

struct Estimate {
  JobConfig config;
  std::vector<RankEstimate> ranks;  ///< by pipeline rank
  int64_t num_parameters = 0;       ///< of the model
  int64_t tokens_per_step = 0;
  Flops flops_per_token;
  std::optional<PredictedTime> time;

  /// The rank with the highest peak.
  const RankEstimate& largest() const;
};

/// Simulates one step of each pipeline rank, one after the other. Throws the errors of assemble for
/// an invalid layout of the model.
Estimate estimate(const JobConfig& config, Registry& registry,
                  const std::optional<MachineSpeed>& speed = std::nullopt);

/// Compute: (FLOPs + recomputed FLOPs) / speed.flops, divided by the share of the step during which
/// the schedule keeps the rank busy. For that share a forward and each half of the backward take 1,
/// and recomputation is added to the input gradient. Traffic: bytes / speed.bandwidth, for all
/// groups. Returns the times of the slowest rank.
PredictedTime predict_time(const Estimate& estimate, const MachineSpeed& speed);

/// Tables for the terminal.
std::string to_text(const Estimate& estimate);
/// For JSON; bytes and FLOPs as numbers.
Value to_value(const Estimate& estimate);

}  // namespace titan::core
