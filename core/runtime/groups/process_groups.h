// Makes the mesh of a run: groups of real ranks over the device's transport, or one rank of a
// layout without the other ranks.
#pragma once

#include <memory>

#include <titan/device.h>
#include <titan/dist/mesh.h>

#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// Connects all groups of this rank. Throws a distributed Error when that fails.
dist::Mesh connect_mesh(const dist::Grid& grid, const Rendezvous& rendezvous, Device& device,
                        std::shared_ptr<dist::Recorder> recorder);

/// The mesh of `rank` in a run without other ranks: collectives are counted and do nothing.
dist::Mesh fake_mesh(const dist::Grid& grid, int rank,
                     std::shared_ptr<dist::Recorder> recorder = nullptr);

/// The meta device, shapes without memory, for simulated ranks.
std::unique_ptr<Device> make_meta_device();

}  // namespace titan::core
