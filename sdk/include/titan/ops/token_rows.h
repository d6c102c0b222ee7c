// Rows of tokens on their way to experts and back. Used by nn::MixtureOfExperts and by whoever
// dispatches tokens to it.
//
// A token goes to k experts: its slots. Slot j of token t has the number t · k + j. Everything is
// differentiable once, by gathering alone: sums run over a token's slots in their order, so no
// result depends on threads, or on which rank has computed what.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// x (N, D) or (N), numbers (M) int64 -> (M, D) or (M): row i is that of number numbers[i].
/// Differentiable as ATen's index_select is, the fastest, which knows no meta tensors: this does.
TITAN_API at::Tensor rows_at(const at::Tensor& x, const at::Tensor& numbers);

/// x (N, D), order (N · k) int64, a permutation of the slots -> (N · k, D): row j is that of the
/// token of slot order[j].
TITAN_API at::Tensor rows_of_slots(const at::Tensor& x, const at::Tensor& order);

/// rows (M, D), order (M) int64, a permutation -> (M, D): row order[j] is rows[j].
TITAN_API at::Tensor in_order_of_slots(const at::Tensor& rows, const at::Tensor& order);

/// rows (N · k, D) by slot, weights (N, k) in fp32 (double for double) -> (N, D) of the rows' type:
/// of each token the sum of its slots' rows times their weights, computed in the weights' type.
TITAN_API at::Tensor sum_of_slots(const at::Tensor& rows, const at::Tensor& weights);

}  // namespace titan::ops
