#include "tests/sdk/nn/layer_fixture.h"

namespace titan::testing {

void materialize(Module& module) {
  module.set_names("m");
  module.visit_parameters([](Parameter& p) {
    if (!p.is_materialized()) p.materialize(c10::kCPU, at::kFloat, 21);
  });
}

at::Tensor weight_of(Module& module, const std::string& name) {
  at::Tensor found;
  module.visit_parameters([&](Parameter& p) {
    if (p.name() == "m." + name + ".weight") found = p.value().detach();
  });
  return found;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

void shard_linears(Module& module, int rank, int size) {
  module.visit_modules([&](const std::string&, Module& child) {
    if (auto* linear = dynamic_cast<Linear*>(&child))
      linear->weight().shard_over(linear->layout() == WeightLayout::row ? 1 : 0,
                                  fake_group(rank, size));
  });
}

}  // namespace titan::testing
