// Gathers and sums rows of tokens on the way to experts and back. Used by nn::MixtureOfExperts and
// by token dispatchers.
//
// A token is routed to k experts: its slots. Slot j of token t has the index t · k + j. Everything
// is differentiable once, using gathers only. Sums run over a token's slots in order, so results do
// not depend on threads or on the ranks that computed the rows.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// x (N, D) or (N), numbers (M) int64 -> (M, D) or (M): row i is x[numbers[i]]. Differentiable and
/// fast like ATen's index_select, which does not support meta tensors; this does.
TITAN_API at::Tensor rows_at(const at::Tensor& x, const at::Tensor& numbers);

/// x (N, D), order (N · k) int64, a permutation of the slots -> (N · k, D): row j is the row of the
/// token of slot order[j].
TITAN_API at::Tensor rows_of_slots(const at::Tensor& x, const at::Tensor& order);

/// rows (M, D), order (M) int64, a permutation -> (M, D): row order[j] is rows[j].
TITAN_API at::Tensor in_order_of_slots(const at::Tensor& rows, const at::Tensor& order);

/// rows (N · k, D) by slot, weights (N, k) in fp32 (double for double) -> (N, D) in the rows'
/// dtype: for each token the sum of its slots' rows times their weights, computed in the weights'
/// dtype.
TITAN_API at::Tensor sum_of_slots(const at::Tensor& rows, const at::Tensor& weights);

}  // namespace titan::ops
