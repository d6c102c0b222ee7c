// Sums the gradient of a parameter over ranks that hold it whole but use it on different data. Used
// by plugins that split the work of a layer over ranks.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// Sums the gradient of one parameter over a group, once per backward: before the parameter adds it
/// to those of earlier microbatches, and before a data-parallel transform sees it.
///
/// The sum is computed in `reduce_dtype` if layers compute in a narrower dtype. If a data-parallel
/// transform has separated the value from the shard, it receives this sum unrounded: value().grad()
/// then has `reduce_dtype`. Otherwise the optimizer updates value(), and the sum is rounded once to
/// its dtype.
/// Thread: trainer thread; the sum is computed on the thread that runs backward.
class TITAN_API GradientSum {
 public:
  /// [before Phase::data] `parameter` outlives the last backward. `reduce_dtype`:
  /// TransformContext::reduce_dtype.
  GradientSum(Parameter& parameter, at::ScalarType reduce_dtype);

  /// [before each forward] Registers a hook on the tensor that forward reads. That tensor changes
  /// when the parameter gets memory and when data parallelism separates its value. The first call
  /// for a tensor fixes the group.
  void attach(const dist::Group& group);
  /// Whether the tensor that forward reads now has the hook already or needs no gradient.
  bool is_attached() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the parameter's hooks, which outlive the plugin
  at::Tensor hooked_;
};

}  // namespace titan::nn
