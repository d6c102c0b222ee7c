// Controls a sharded model part: when each unit is gathered, freed and reduced. Used by Fsdp.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <titan/model.h>
#include <titan/transform.h>

#include "gathered_unit.h"
#include "gradient_queue.h"

namespace titan::fsdp {

/// Forward: gather -> run -> free; the next layer's unit is gathered while this one runs. Backward:
/// gather -> run -> free -> reduce; the previous layer's unit is gathered meanwhile. In the
/// backward a unit is freed once its gradients have arrived. A unit with frozen weights is freed
/// when the backward reaches the previous layer, or for the first layer of the backward at the end
/// of the step. Between steps no unit is whole.
///
/// Shared by the transform, the layers' wrappers and the graphs built through them, so that it
/// outlives all three. The model part outlives every use of it.
class ShardedPart final : public GradientReducer, public std::enable_shared_from_this<ShardedPart> {
 public:
  /// Shards the parameters of `part` and wraps its layers.
  static std::shared_ptr<ShardedPart> make(ModelPart& part, const Settings& settings);

  void begin_step() override;
  /// Correct for any order of forwards and backwards; a microbatch after the announced last one
  /// costs another reduction.
  void start_microbatch(bool is_last) override;
  void finish_gradients() override;

 private:
  ShardedPart(ModelPart& part, const Settings& settings);
  void attach(ModelPart& part);

  at::Tensor run_layer(size_t layer, const at::Tensor& x, const Batch& batch, const nn::Next& next);
  void before_backward(size_t layer, bool has_layer_before);
  void gradient_arrived(size_t unit, Member& member);
  void all_gradients_arrived(size_t unit);

  void start_gathers(size_t layer);
  void finish_gathers(size_t layer);
  bool is_of(size_t unit, size_t layer) const;
  bool stays_whole_after(size_t unit, size_t layer) const;
  bool is_freed_in_backward() const;

  const Settings settings_;
  const SideStream copies_;  // stream of copies into gather buffers
  std::vector<Unit> units_;
  std::deque<GatheredUnit> gathered_;  // one per unit
  std::vector<std::vector<size_t>> units_of_layer_;
  GradientQueue queue_;
  bool is_last_microbatch_ = true;
};

}  // namespace titan::fsdp
