// What the tests of single layers share: memory for a layer, its weights by name, its cut over
// tensor-parallel ranks.
#pragma once

#include <string>

#include <ATen/TensorOperators.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>

#include "tests/sdk/nn/fake_group.h"

namespace titan::testing {

using nn::Linear;
using nn::Module;
using nn::Parameter;
using nn::WeightLayout;

inline void materialize(Module& module) {
  module.set_names("m");
  module.visit_parameters([](Parameter& p) {
    if (!p.is_materialized()) p.materialize(c10::kCPU, at::kFloat, 21);
  });
}

inline at::Tensor weight_of(Module& module, const std::string& name) {
  at::Tensor found;
  module.visit_parameters([&](Parameter& p) {
    if (p.name() == "m." + name + ".weight") found = p.value().detach();
  });
  return found;
}

inline double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

/// Cuts every Linear below as tensor parallelism of `size` ranks does, by its layout.
inline void shard_linears(Module& module, int rank, int size) {
  module.visit_modules([&](const std::string&, Module& child) {
    if (auto* linear = dynamic_cast<Linear*>(&child))
      linear->weight().shard_over(linear->layout() == WeightLayout::row ? 1 : 0,
                                  fake_group(rank, size));
  });
}

}  // namespace titan::testing
