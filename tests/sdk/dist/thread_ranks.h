// Ranks as threads of one process, over real gloo groups: for tests of collectives and of the
// plugins that are made of them.
#pragma once

#include <functional>
#include <memory>

#include <titan/device.h>
#include <titan/dist/mesh.h>

namespace titan::testing {

/// The device plugin "cpu" with its defaults.
std::unique_ptr<Device> make_cpu();

/// Runs `body` once per rank of the mesh, each on a thread of its own with its own groups, and
/// without further threads for tensors; throws the exception of the first rank that failed. A rank
/// that waits for one that does not come fails after ten minutes.
void run_ranks(const dist::Grid& grid, const std::function<void(const dist::Mesh&)>& body);
inline void run_ranks(const dist::MeshShape& shape,
                      const std::function<void(const dist::Mesh&)>& body) {
  run_ranks(dist::Grid(shape), body);
}

}  // namespace titan::testing
