// One matrix product per group of rows, each with a weight of its own: the experts of a mixture.
// Used by nn::GroupedLinear.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// x (N, in), weight (G, out, in) of one dtype, `rows` G numbers that add up to N -> (N, out): the
/// first rows[0] rows of x times weight[0] transposed, the next rows[1] times weight[1] transposed,
/// and so on. Groups may be empty; their weight's gradient is zero. Differentiable once in x and
/// weight. Any floating type and device; on the meta device too. Throws config Error on shapes and
/// rows that do not fit.
TITAN_API at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight,
                                    at::IntArrayRef rows);

/// x (N, out), bias (G, out) of one dtype, `rows` as above -> x plus factor times the bias of each
/// row's group. Differentiable once in x and bias.
TITAN_API at::Tensor add_group_bias(const at::Tensor& x, const at::Tensor& bias,
                                    at::IntArrayRef rows, double factor = 1);

}  // namespace titan::ops
