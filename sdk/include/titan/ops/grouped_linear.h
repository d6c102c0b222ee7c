// One matrix product per group of rows, each with a weight of its own: the experts of a mixture.
// Used by nn::GroupedLinear, by its kernels of converters and by devices.
#pragma once

#include <cstdint>
#include <vector>

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

/// Rows [first, first + count) are those of a group; count > 0.
struct GroupRows {
  int64_t group, first, count;
};
/// Of each group that has rows, in order.
TITAN_API std::vector<GroupRows> rows_of_groups(at::IntArrayRef rows);

/// What titan::grouped_mm and titan::grouped_mm_weight_grad are made of where a device has nothing
/// better for the operands: a product of ATen's per group, without a graph. For device plugins.
/// x (N, k), weight (G, k, n), which may be a transposed view -> (N, n).
TITAN_API at::Tensor grouped_mm_by_groups(const at::Tensor& x, const at::Tensor& weight,
                                          at::IntArrayRef rows);
/// grad (N, out), x (N, in) -> (G, out, in), zero for groups without rows.
TITAN_API at::Tensor grouped_mm_weight_grad_by_groups(const at::Tensor& grad, const at::Tensor& x,
                                                      at::IntArrayRef rows);

}  // namespace titan::ops
