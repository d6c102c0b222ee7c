// Sends rows of tokens to the ranks of their experts and returns the results. Lepikhin et al., 2020
// (arXiv:2006.16668).
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/token_dispatcher.h>

namespace titan::expert_parallel {

/// Each rank of `group` has an equal number of consecutive experts. A forward takes an all-to-all
/// of counts, which the host waits for, and two of rows; a backward takes two of rows. On average a
/// rank sends (N k) (size - 1) / size rows each time; at worst it receives all rows of the group.
std::unique_ptr<nn::TokenDispatcher> make_dispatcher(const dist::Group& group);

}  // namespace titan::expert_parallel
