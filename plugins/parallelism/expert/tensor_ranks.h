// Wraps a token dispatcher for ranks of tensor parallelism. Experts that are cut over these ranks
// need the tokens of all of them; tokens that all of them have are sent once. TokenCopies says
// whether the ranks have the same tokens or, with sequence parallelism, different ones.
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/token_dispatcher.h>

namespace titan::expert_parallel {

/// For experts whose hidden width is cut over `group`: on each rank `inner` dispatches the tokens
/// of all ranks, and the result of a token is a sum over the ranks. Every rank routes its own
/// tokens, so no gradient of the routing is counted twice.
///
/// T ranks with N different tokens each: forward gathers T N rows, their choices and their weights,
/// and reduce-scatters T N rows; backward the reverse. The same N tokens on all ranks: forward
/// all-reduces N rows, and so does backward.
///
/// `bias`, or null: a parameter that is not cut over `group` and of which each rank adds its part
/// to that sum, so its gradient on a rank is a part of the whole. Tensor parallelism sums these
/// gradients if the ranks have different tokens; else the dispatcher does, in `reduce_dtype`.
std::unique_ptr<nn::TokenDispatcher> gather_tokens(const dist::Group& group,
                                                   std::unique_ptr<nn::TokenDispatcher> inner,
                                                   nn::Parameter* bias,
                                                   at::ScalarType reduce_dtype);

/// For experts that are distributed over ranks including those of `group`. If all ranks of `group`
/// have the same tokens, `inner` dispatches an equal part of them on each rank, in order, and each
/// rank receives all results: an all-gather of N rows forward, an all-reduce of N rows backward.
/// Otherwise `inner` is used unchanged.
std::unique_ptr<nn::TokenDispatcher> share_copies(const dist::Group& group,
                                                  std::unique_ptr<nn::TokenDispatcher> inner);

}  // namespace titan::expert_parallel
