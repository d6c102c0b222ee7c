// What the tests of single layers share: memory for a layer, its weights by name, its cut over
// tensor-parallel ranks.
#pragma once

#include <string>

#include <titan/nn/linear.h>
#include <titan/nn/module.h>

#include "tests/sdk/nn/fake_group.h"

namespace titan::testing {

using nn::Linear;
using nn::Module;
using nn::Parameter;
using nn::WeightLayout;

/// Names the layer "m" and gives it what it starts with, in fp32.
void materialize(Module& module);

/// Undefined when there is none of this name below "m".
at::Tensor weight_of(Module& module, const std::string& name);

double max_difference(const at::Tensor& a, const at::Tensor& b);

/// Cuts every Linear below as tensor parallelism of `size` ranks does, by its layout.
void shard_linears(Module& module, int rank, int size);

}  // namespace titan::testing
