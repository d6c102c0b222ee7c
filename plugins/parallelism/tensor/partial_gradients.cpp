#include "partial_gradients.h"

#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <titan/nn/cuts.h>

namespace titan::tensor_parallel {
namespace {

/// Hooks stand on the tensors that forward reads. Which these are is known only when forward runs:
/// a parameter's value changes when it gets memory or is handed to a data-parallel transform.
///
/// A hook on the tensor sees the gradient of one backward; Parameter::on_gradient would see the sum
/// over the microbatches so far, part of it summed over the ranks already.
class PartialGradients {
 public:
  PartialGradients(std::vector<nn::Parameter*> parameters, const dist::Mesh& mesh)
      : parameters_(std::move(parameters)), mesh_(mesh), hooked_(parameters_.size()) {}

  void attach() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& value = parameters_[i]->value();
      if (hooked_[i].is_same(value) || !value.requires_grad()) continue;
      hooked_[i] = value;
      const dist::Group& group = mesh_.rest_of("tp", nn::cut_groups(*parameters_[i]));
      if (group.size() == 1) continue;
      value.register_hook([group](const at::Tensor& gradient) {
        if (!gradient.defined()) return gradient;  // deferred: Parameter::add_gradient comes here
        const at::Tensor total = gradient.clone(at::MemoryFormat::Contiguous);
        group.all_reduce(total, dist::Reduce::sum).wait();
        return total;
      });
    }
  }

 private:
  std::vector<nn::Parameter*> parameters_;
  dist::Mesh mesh_;
  std::vector<at::Tensor> hooked_;
};

}  // namespace

void sum_partial_gradients(nn::Module& layer, std::vector<nn::Parameter*> parameters,
                           const dist::Mesh& mesh) {
  if (parameters.empty()) return;
  const auto gradients = std::make_shared<PartialGradients>(std::move(parameters), mesh);
  layer.wrap([gradients](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    gradients->attach();
    return next(x, batch);
  });
}

}  // namespace titan::tensor_parallel
