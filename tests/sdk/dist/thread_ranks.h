// Ranks as threads of one process, over real gloo groups. Used by tests of collectives and of
// plugins that communicate.
#pragma once

#include <functional>
#include <memory>

#include <titan/device.h>
#include <titan/dist/mesh.h>

namespace titan::testing {

/// The device plugin "cpu" with its default options.
std::unique_ptr<Device> make_cpu();

/// Runs `body` once per rank of the mesh. Each rank has its own thread and groups, and computes
/// with one thread. Throws the exception of the first rank that failed. A rank that waits for an
/// absent rank fails after ten minutes.
void run_ranks(const dist::Grid& grid, const std::function<void(const dist::Mesh&)>& body);
inline void run_ranks(const dist::MeshShape& shape,
                      const std::function<void(const dist::Mesh&)>& body) {
  run_ranks(dist::Grid(shape), body);
}

}  // namespace titan::testing
