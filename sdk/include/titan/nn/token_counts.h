// Numbers of tokens that a layer counts over a step, each token once, on however many ranks. Used
// by modules that act on them when the step counts (nn::StepModule).
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>

namespace titan::nn {

/// Thread: the one that runs forward.
class TITAN_API TokenCounts {
 public:
  /// [StepModule::begin_run]
  void clear() { counts_.reset(); }
  /// [forward] Adds `counts` (int64, any shape, the same each time) of the tokens that the layer
  /// sees, unless they were counted already (titan::is_first_run).
  void add(const at::Tensor& counts, const Batch& batch);
  /// [StepModule::commit] Over all ranks that run the layer, equal on each of them. Requires `add`
  /// in this run.
  at::Tensor sum(const dist::Mesh& mesh) const;

 private:
  at::Tensor counts_;
  bool are_copied_ = false;  // ranks of tensor parallelism see the same tokens
};

}  // namespace titan::nn
