// One matrix product per group of rows, each with its own weight: the experts of a mixture. Used by
// nn::GroupedLinear, by converters' kernels for it and by devices.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// x (N, in), weight (G, out, in) of one dtype, `rows` G numbers that sum to N -> (N, out): the
/// first rows[0] rows of x times weight[0] transposed, the next rows[1] times weight[1] transposed,
/// and so on. Groups may be empty; their weight's gradient is zero. Differentiable once in x and
/// weight. Any floating dtype and device, including meta. Throws a config Error for shapes and rows
/// that do not match.
TITAN_API at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight,
                                    at::IntArrayRef rows);

/// x (N, out), bias (G, out) of one dtype, `rows` as above -> x plus factor times the bias of each
/// row's group. Differentiable once in x and bias.
TITAN_API at::Tensor add_group_bias(const at::Tensor& x, const at::Tensor& bias,
                                    at::IntArrayRef rows, double factor = 1);

/// Rows [first, first + count) belong to a group; count > 0.
struct GroupRows {
  int64_t group, first, count;
};
/// The groups that have rows, in order.
TITAN_API std::vector<GroupRows> rows_of_groups(at::IntArrayRef rows);

/// Default implementation of titan::grouped_mm and titan::grouped_mm_weight_grad, for device
/// plugins without a better one: one ATen product per group, without a graph.
/// x (N, k), weight (G, k, n), which may be a transposed view -> (N, n).
TITAN_API at::Tensor grouped_mm_by_groups(const at::Tensor& x, const at::Tensor& weight,
                                          at::IntArrayRef rows);
/// grad (N, out), x (N, in) -> (G, out, in), zero for groups without rows.
TITAN_API at::Tensor grouped_mm_weight_grad_by_groups(const at::Tensor& grad, const at::Tensor& x,
                                                      at::IntArrayRef rows);

}  // namespace titan::ops
