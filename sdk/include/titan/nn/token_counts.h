// Counts tokens of a layer over a step, each token once, regardless of the number of ranks that see
// it. Used by modules that use the counts at commit (nn::StepModule).
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
  /// [forward] Adds `counts` (int64, the same shape each time) of the layer's tokens, unless this
  /// is a recomputation or validation (titan::is_first_run).
  void add(const at::Tensor& counts, const Batch& batch);
  /// [StepModule::commit] The sum over all ranks that run the layer, equal on each of them.
  /// Requires `add` in this run.
  at::Tensor sum(const dist::Mesh& mesh) const;

 private:
  at::Tensor counts_;
  bool are_copied_ = false;  // ranks of tensor parallelism see the same tokens
};

}  // namespace titan::nn
