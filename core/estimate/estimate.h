// What a run would take, found out without running it: memory per pipeline rank, operations,
// traffic and, for given machines, a predicted time. Used by `titan estimate` and
// [memory_estimation].
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

/// What one machine of the run can do.
struct MachineSpeed {
  double flops = 0;      ///< per second, of a rank
  double bandwidth = 0;  ///< bytes per second, that a rank sends
};

/// How long a step takes by the formulas of `predict_time`.
struct PredictedTime {
  double compute_seconds = 0;  ///< of the slowest rank, without waiting
  double idle_share = 0;       ///< of that rank's step, by the pipeline's schedule
  double traffic_seconds = 0;  ///< of the same rank, if nothing of it were hidden
  double all_hidden = 0;       ///< seconds per step: communication behind the computation
  double nothing_hidden = 0;   ///< seconds per step: one after the other
};

/// One stage of a pipeline rank; a run without a pipeline has one.
struct StageEstimate {
  int index = 0;
  std::string first_layer, last_layer;
  int64_t parameters = 0;        ///< elements of this rank's shards
  int64_t activation_bytes = 0;  ///< kept from one microbatch's forward to its backward
};

/// The rank of one pipeline rank with coordinate 0 on every other axis: where sizes do not divide
/// evenly the largest share.
struct RankEstimate {
  int rank = 0;  ///< global
  int pipeline_rank = 0;
  std::vector<StageEstimate> stages;
  SimulatedStep step;
  int64_t library_bytes = 0;  ///< of a GPU's libraries, in addition to the step's tensors
  double flops = 0;  ///< of its step, forward and backward, causal_half; recomputation left out

  /// What the device must have.
  int64_t peak_bytes() const { return step.peak.bytes.total() + library_bytes; }
  /// The same where all tokens go to the experts of one rank; none for a model without experts.
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

  /// The one with the highest peak.
  const RankEstimate& largest() const;
};

/// Simulates one step of each pipeline rank, one after the other. Throws as assemble would for what
/// is wrong with the model's layout.
Estimate estimate(const JobConfig& config, Registry& registry,
                  const std::optional<MachineSpeed>& speed = std::nullopt);

/// Compute: (FLOPs + recomputed FLOPs) / speed.flops, divided by the share of the step in which the
/// schedule keeps the rank busy when a stage's forward takes 1 and both halves of its backward 1
/// and what is recomputed beside. Traffic: bytes / speed.bandwidth, whichever the group. Of the
/// rank that is slowest.
PredictedTime predict_time(const Estimate& estimate, const MachineSpeed& speed);

/// As tables for the terminal.
std::string to_text(const Estimate& estimate);
/// For machines; bytes and FLOPs as numbers.
Value to_value(const Estimate& estimate);

}  // namespace titan::core
