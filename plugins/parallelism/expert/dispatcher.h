// Brings rows of tokens to the ranks that have their experts, and back. Lepikhin et al., 2020
// (arXiv:2006.16668).
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/token_dispatcher.h>

namespace titan::expert_parallel {

/// Experts are dealt to the ranks of `group` in order, each rank has as many. A forward costs an
/// all-to-all of counts, whose copy on the host is waited for, and two of rows; a backward two of
/// rows. On average a rank sends (N k) (size - 1) / size rows each time; at worst it gets all that
/// the group has.
std::unique_ptr<nn::TokenDispatcher> make_dispatcher(const dist::Group& group);

}  // namespace titan::expert_parallel
