// Shared helpers of the tests of single layers: memory for a layer, its weights by name, its shards
// for tensor-parallel ranks.
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

/// Names the layer "m" and gives it its initial values, in fp32.
void materialize(Module& module);

/// Undefined when there is none of this name below "m".
at::Tensor weight_of(Module& module, const std::string& name);

double max_difference(const at::Tensor& a, const at::Tensor& b);

/// Shards every Linear below, by its layout, as tensor parallelism of `size` ranks does.
void shard_linears(Module& module, int rank, int size);

}  // namespace titan::testing
