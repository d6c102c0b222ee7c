// Which rank writes which tensors: each element of the state is written once, and replicas share
// the work. Used by the checkpointer.
#pragma once

#include <vector>

#include <titan/dist/mesh.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// The tensors of `state` that `rank` writes: those of which it alone holds its part, and its
/// share, by bytes, of those that replicas hold too. All ranks of a pipeline stage compute the same
/// division without communication, because they have the same tensors in the same order. The stage
/// that holds the original writes a tensor with copies.
std::vector<StateTensor> own_part(const std::vector<StateTensor>& state, const dist::Grid& grid,
                                  int rank);

}  // namespace titan::core
