#include "partial_gradients.h"

#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/nn/cuts.h>
#include <titan/nn/gradient_sum.h>

namespace titan::tensor_parallel {
namespace {

/// The ranks to sum a gradient over are known only when forward runs, because other transforms may
/// cut the parameter before.
class PartialGradients {
 public:
  PartialGradients(const std::vector<nn::Parameter*>& parameters, const TransformContext& context)
      : parameters_(parameters), mesh_(context.mesh) {
    for (nn::Parameter* parameter : parameters)
      sums_.emplace_back(*parameter, context.reduce_dtype);
  }

  void attach() {
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (!sums_[i].is_attached())
        sums_[i].attach(mesh_.complement("tp", nn::cut_groups(*parameters_[i])));
  }

 private:
  std::vector<nn::Parameter*> parameters_;
  dist::Mesh mesh_;
  std::vector<nn::GradientSum> sums_;
};

}  // namespace

void sum_partial_gradients(nn::Module& layer, const std::vector<nn::Parameter*>& parameters,
                           const TransformContext& context) {
  if (parameters.empty()) return;
  const auto gradients = std::make_shared<PartialGradients>(parameters, context);
  layer.wrap([gradients](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    gradients->attach();
    return next(x, batch);
  });
}

}  // namespace titan::tensor_parallel
