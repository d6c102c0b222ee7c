// The mesh of one rank of a layout whose other ranks do not exist, with the memory that its
// collectives hold until they are waited for. Used where ranks are simulated.
#pragma once

#include <titan/dist/mesh.h>

namespace titan::core {

/// What of a transport shows in memory.
struct SimulatedTransport {
  /// A reduce-scatter receives the other ranks' shares beside its input, as gloo's does; NCCL's
  /// needs no tensor.
  bool receives_beside = false;
};

/// As fake_mesh; nothing is communicated, and what a collective works on stays until its end.
dist::Mesh simulated_mesh(const dist::Grid& grid, int rank, const SimulatedTransport& transport);

}  // namespace titan::core
