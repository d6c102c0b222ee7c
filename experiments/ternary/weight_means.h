// Means of the absolute values of weights, equal on all ranks under any layout.
#pragma once

#include <memory>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/nn/parameter.h>

namespace ternary {

/// Weights change only in the optimizer's step, so their means are computed once a step: sums over
/// all shards in double precision, in one all-reduce for each group over which weights are sharded.
///
/// Thread: trainer thread. All ranks compute means at the same place in their order of collectives:
/// after the optimizer's step, and in the first forward.
class WeightMeans {
 public:
  WeightMeans(const titan::dist::Mesh& mesh, c10::Device device) : mesh_(mesh), device_(device) {}

  struct Mean {
    titan::nn::Parameter& weight;
    at::Tensor value;  // a scalar, float64
  };
  /// The caller, a kernel of the weight's layer, does not outlive the weight.
  std::shared_ptr<Mean> add(titan::nn::Parameter& weight);
  const at::Tensor& value(const Mean& mean);
  void update();

 private:
  titan::dist::Mesh mesh_;
  c10::Device device_;
  std::vector<std::weak_ptr<Mean>> means_;  // a pipeline rank drops the layers of other ranks
  bool are_known_ = false;
};

}  // namespace ternary
