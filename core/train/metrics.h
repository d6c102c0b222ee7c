// What a step measured, turned into the scalars of torchtitan v0.2.2.
#pragma once

#include <cstdint>
#include <optional>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/step.h>

#include "core/train/logger_set.h"
#include "core/train/loss_parts.h"

namespace titan::core {

struct MetricsOptions {
  int64_t log_freq = 10;
  double flops_per_token = 0;        ///< convention A (full attention), as torchtitan counts
  std::optional<double> peak_flops;  ///< given or known; MFU is printed only then
  bool times_checkpoints = false;
};

/// Thread: trainer thread. References outlive it.
class Metrics {
 public:
  Metrics(const MetricsOptions& options, const dist::Mesh& mesh, Device& device, LossParts& parts,
          LoggerSet& loggers);

  /// Adds the time that waiting for data took.
  double& data_loading_seconds() { return data_seconds_; }
  /// Adds the time for which saving held the trainer thread.
  double& checkpoint_seconds() { return checkpoint_seconds_; }
  /// Leaves `seconds` that were spent beside training out of the interval.
  void leave_out(double seconds) { interval_start_ += seconds; }
  /// Counts the step's tokens; at step 1 and every log_freq steps measures, reduces over the ranks
  /// and logs.
  /// `tokens_seen`: over all ranks since the start of training. `lr`: the step's.
  void record(const Step& step, int64_t tokens_seen, double lr);

 private:
  /// Of all ranks; none where no layer of the model has one.
  std::optional<double> auxiliary_loss(const Step& step);
  void restart_interval();

  MetricsOptions options_;
  const dist::Mesh& mesh_;
  Device& device_;
  LossParts& parts_;
  LoggerSet& loggers_;
  std::optional<bool> has_auxiliary_loss_;  // settled among the ranks when the first step is logged
  int64_t interval_tokens_ = 0;
  int64_t interval_steps_ = 0;
  double interval_start_ = 0;
  int64_t interval_start_bytes_ = 0;
  double data_seconds_ = 0;
  double checkpoint_seconds_ = 0;
};

}  // namespace titan::core
