// The mesh of one rank of a layout whose other ranks do not exist. Its collectives hold the memory
// that real ones would hold until `wait`. Used for simulated ranks.
#pragma once

#include <titan/dist/mesh.h>

namespace titan::core {

/// The properties of a transport that affect memory.
struct SimulatedTransport {
  /// A reduce-scatter receives the other ranks' shares into a tensor next to its input, as gloo's
  /// does; NCCL's needs no such tensor.
  bool receives_beside = false;
};

/// As fake_mesh; nothing is communicated, and a collective's tensors stay alive until its `wait`.
dist::Mesh simulated_mesh(const dist::Grid& grid, int rank, const SimulatedTransport& transport);

}  // namespace titan::core
