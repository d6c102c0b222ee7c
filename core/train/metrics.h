// Turns a step's measurements into the scalars of torchtitan v0.2.2. Used by the trainer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/fault_tolerance/replicas.h>
#include <titan/step.h>

#include "core/checkpoint/train_state.h"
#include "core/train/journal.h"
#include "core/train/logging/logger_set.h"
#include "core/train/logging/slowest_rank.h"
#include "core/train/loss/loss_parts.h"

namespace titan::core {

struct MetricsOptions {
  int64_t log_freq = 10;
  double flops_per_token = 0;        ///< convention A (full attention), as in torchtitan
  std::optional<double> peak_flops;  ///< configured or known; MFU is printed only then
  bool times_checkpoints = false;
  ReplicaMember* replicas = nullptr;  ///< null: one group
};

/// As a step member it reduces the losses of a logged step before the step is committed: replica
/// groups may leave right after. Thread: trainer thread. References outlive it.
class Metrics final : public StepMember {
 public:
  Metrics(const MetricsOptions& options, const dist::Mesh& mesh, Device& device, LossParts& parts,
          LoggerSet& loggers, Journal& journal);

  /// Whether `step` is logged.
  bool is_due(int64_t step) const { return step == 1 || step % options_.log_freq == 0; }
  bool undoes_steps() const override { return false; }
  void reduced(Step& step) override;
  /// [after `reduced`] Counts the step's tokens; at step 1 and every log_freq steps measures,
  /// reduces over the ranks and logs. `state`: after the step. `lr`: the step's.
  void record(const Step& step, const TrainState& state, double lr);
  /// [at the end of the run] Reports the steps since the last logged one to the journal.
  void finish(int64_t last_step);

 private:
  /// Losses of a logged step, over the ranks of all groups.
  struct Losses {
    double average = 0, max = 0;  ///< max: of a rank's rows
    int64_t num_terms = 0;
    std::map<std::string, double> parts;
    std::optional<double> auxiliary;
  };

  /// By phase since the last logged step; the sum is the time since then.
  StepClock::Seconds interval_seconds() const;
  /// Summed over all ranks; unset if no layer of the model has one.
  std::optional<double> auxiliary_loss(const Step& step);
  void restart_interval();

  MetricsOptions options_;
  const dist::Mesh& mesh_;
  Device& device_;
  LossParts& parts_;
  LoggerSet& loggers_;
  Journal& journal_;
  SlowestRank slowest_rank_;
  Losses losses_;
  std::optional<bool> has_auxiliary_loss_;  // all ranks agree on it when the first step is logged
  int64_t interval_tokens_ = 0;             // of all ranks, without padding
  int64_t interval_steps_ = 0;
  StepClock::Seconds interval_start_{};
  int64_t interval_start_bytes_ = 0;
};

}  // namespace titan::core
