// Who writes what: each element of the state is written once, and ranks that hold the same share
// the work. Used by the checkpointer.
#pragma once

#include <vector>

#include <titan/dist/mesh.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// The tensors of `state` that `rank` writes: those of which it holds a part that nobody else
/// holds, and its share of those that replicas hold as well, by bytes. Every rank of a pipeline
/// stage comes to the same division without a word between them: they see the same tensors in the
/// same order. Copies are written by the stage that holds the original.
std::vector<StateTensor> own_part(const std::vector<StateTensor>& state,
                                  const dist::Grid& grid, int rank);

}  // namespace titan::core
