// What goes around a dispatcher where there are ranks of tensor parallelism: experts that are cut
// over them need the tokens of all of them; tokens that all of them have are sent once. Both tell
// by TokenCopies whether the ranks have the same tokens or, as under sequence parallelism, each its
// own.
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/token_dispatcher.h>

namespace titan::expert_parallel {

/// Of experts whose hidden width is cut over `group`: on each of its ranks `inner` dispatches the
/// tokens of all of them, and what a token becomes is a sum over them. Every rank routes its own
/// tokens, so nothing that leads to a choice is counted twice.
///
/// T ranks that have N tokens each, their own: forward gathers T N rows, their choices and their
/// weights, and reduce-scatters T N rows; backward the reverse. The same N tokens: forward
/// all-reduces N rows, backward as many.
///
/// `bias`, or null: a parameter that no rank of `group` has cut and of which each adds its share to
/// that sum, so that its gradient is one share of the whole. Tensor parallelism adds them up where
/// each rank has its own tokens, the dispatcher where all have the same, in `reduce_dtype`.
std::unique_ptr<nn::TokenDispatcher> gather_tokens(const dist::Group& group,
                                                   std::unique_ptr<nn::TokenDispatcher> inner,
                                                   nn::Parameter* bias,
                                                   at::ScalarType reduce_dtype);

/// Of experts that are dealt to ranks of `group` among others: where all of it have the same
/// tokens, `inner` dispatches a share of them on each, in order, and each rank gets what became of
/// all: an all-gather of N rows forward, an all-reduce of N rows backward. Else `inner` as it is.
std::unique_ptr<nn::TokenDispatcher> share_copies(const dist::Group& group,
                                                  std::unique_ptr<nn::TokenDispatcher> inner);

}  // namespace titan::expert_parallel
