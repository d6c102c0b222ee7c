// Adam on the parameters of a run, with its states. Used by the optimizers Adam and AdamW, and by
// Muon for the weights that are no hidden matrices.
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

/// A device that brings ops::adamw_step updates AdamW's weights by it, with the implementation
/// `fused`. Elsewhere weights whose states have their dtype are updated by update_adam as they are.
/// Where the states have another dtype than the weights, or the weights are rounded stochastically,
/// parameter after parameter is updated in float32 (float64 for weights in float64): copies are
/// made of what is narrower, updated and rounded back, to nearest unless asked for otherwise.
class AdamUpdate {
 public:
  /// Declares "step", "exp_avg" and "exp_avg_sq" of the parameters as states of `owner`.
  AdamUpdate(const AdamSettings& settings, const std::vector<Parameter*>& parameters, uint64_t seed,
             StatefulOptimizer& owner);

  /// As Optimizer::step, with the learning rate itself. `scale`: as ScalesGradients::step_scaled;
  /// undefined: gradients are taken as they are.
  void step(double lr, const at::Tensor& scale = {});
  /// As ScalesGradients.
  bool scales_gradients() const;

 private:
  /// A number of `step_` as the host knows it.
  struct Count {
    double value = 0;
    std::optional<uint32_t> version;  // of the tensor that it was in; none: has to be read
  };

  void count_step(const std::vector<size_t>& indices);
  bool needs_counts() const;
  bool is_wide(size_t index);
  void step_wide(size_t index, double lr);
  /// In one pass, where the device has one for it. `scale` is in float32 here.
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
