// Adam with its states on a list of parameters. Used by the optimizers Adam and AdamW, and by Muon
// for all weights but the hidden matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/optimizer.h>

#include "adam_kernels.h"

namespace titan::optimizers {

/// Of exp_avg and exp_avg_sq.
enum class StateDtype { as_stored, bfloat16, float32 };

struct AdamSettings {
  AdamFactors factors;
  Decay decay = Decay::decoupled;
  Implementation implementation = Implementation::fused;
  StateDtype state_dtype = StateDtype::as_stored;
  bool stochastic_rounding = false;  // of weights in bfloat16
};

/// AdamW with the implementation `fused` uses ops::adamw_step where the device provides it.
/// Elsewhere update_adam updates weights in place if their states have the same dtype. If the
/// dtypes differ or the weights are rounded stochastically, parameters are updated one by one in
/// float32 (float64 for float64 weights): narrower tensors are copied to the wide dtype, updated
/// and rounded back, to nearest unless stochastic_rounding is set.
class AdamUpdate {
 public:
  /// Declares "step", "exp_avg" and "exp_avg_sq" of the parameters as states of `owner`.
  AdamUpdate(const AdamSettings& settings, const std::vector<Parameter*>& parameters, uint64_t seed,
             StatefulOptimizer& owner);

  /// As Optimizer::step, with the learning rate itself. `scale`: as ScalesGradients::step_scaled;
  /// undefined: gradients are not scaled.
  void step(double lr, const at::Tensor& scale = {});
  /// As ScalesGradients::scales_gradients.
  bool scales_gradients() const;

 private:
  /// The host's copy of an element of `step_`.
  struct Count {
    double value = 0;
    std::optional<uint32_t> version;  // of the tensor when it was read; unset: must be read
  };

  void count_step(const std::vector<size_t>& indices);
  bool needs_counts() const;
  bool is_wide(size_t index);
  void step_wide(size_t index, double lr);
  /// Updates by ops::adamw_step; false if the device lacks it. `scale`: in float32.
  bool step_on_device(size_t index, double lr, const at::Tensor& scale);
  bool wants_one_pass() const;

  AdamSettings settings_;
  std::vector<Parameter*> parameters_;
  uint64_t seed_;
  std::vector<Count> counts_;  // of each parameter
  OptimizerState& step_;
  OptimizerState& exp_avg_;
  OptimizerState& exp_avg_sq_;
};

}  // namespace titan::optimizers
