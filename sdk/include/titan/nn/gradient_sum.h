// The gradient of a parameter that ranks hold whole but use differently: a sum over these ranks.
// Used by plugins that cut the work of a layer.
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
/// The sum is made in `reduce_dtype` where layers compute in a narrower type. A data-parallel
/// transform that has separated the value from the shard gets this sum unrounded: value().grad() is
/// then of `reduce_dtype`. Otherwise value() is what the optimizer updates, and the sum is rounded
/// once to its type.
/// Thread: trainer thread; the sum is made on the thread that runs backward.
class TITAN_API GradientSum {
 public:
  /// [before Phase::data] `parameter` outlives the last backward. `reduce_dtype`:
  /// TransformContext::reduce_dtype.
  GradientSum(Parameter& parameter, at::ScalarType reduce_dtype);

  /// [before each forward] Takes note of the tensor that forward reads: it is another one once the
  /// parameter has memory, or data parallelism has taken it. The first call for a tensor decides
  /// the group.
  void attach(const dist::Group& group);
  /// Whether the tensor that forward reads now is known already, or takes no gradient.
  bool is_attached() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // with the hooks of the parameter, which outlive the plugin
  at::Tensor hooked_;
};

}  // namespace titan::nn
