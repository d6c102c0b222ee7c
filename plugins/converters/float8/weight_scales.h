// Tensorwise scales of weights, equal on all ranks that hold a shard of the weight, for any layout.
// Used by Float8Products and the float8 all-gather.
#pragma once

#include <memory>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/nn/parameter.h>

#include "quantize.h"

namespace titan::float8 {

class WeightScales;

/// The scale of one weight. Owned by the kernel and the gather transform that use it, which do not
/// outlive the weight.
class WeightScale {
 public:
  WeightScale(std::shared_ptr<WeightScales> all, nn::Parameter& weight)
      : all_(std::move(all)), weight_(weight) {}
  /// A scalar, fp32. If scales are not known yet, computes those of all weights.
  const at::Tensor& value();
  const nn::Parameter& weight() const { return weight_; }

 private:
  friend class WeightScales;
  std::shared_ptr<WeightScales> all_;
  nn::Parameter& weight_;
  at::Tensor value_;
};

/// Weights change only in the optimizer's step, so their scales are computed once a step: the
/// largest absolute values of all shards, cast to the dtype of the computation, in one all-reduce
/// for each group over which a weight is sharded.
///
/// Thread: trainer thread. All ranks of these groups compute scales at the same place in their
/// order of collectives: after the optimizer's step, and in the first forward.
class WeightScales : public std::enable_shared_from_this<WeightScales> {
 public:
  WeightScales(const dist::Mesh& mesh, c10::Device device, at::ScalarType compute_dtype,
               ScaleRounding rounding);
  std::shared_ptr<WeightScale> add(nn::Parameter& weight);
  /// Computes all scales from the present weights.
  void update();
  bool are_known() const { return are_known_; }

 private:
  /// The scales still in use: a pipeline rank drops the layers of other ranks.
  std::vector<std::shared_ptr<WeightScale>> alive() const;

  dist::Mesh mesh_;
  c10::Device device_;
  at::ScalarType compute_dtype_;
  ScaleRounding rounding_;
  std::vector<std::weak_ptr<WeightScale>> scales_;
  bool are_known_ = false;
};

}  // namespace titan::float8
