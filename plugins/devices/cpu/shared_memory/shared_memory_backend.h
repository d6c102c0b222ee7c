// Collectives on the CPU between ranks of one machine through shared memory. Used by the cpu
// device.
#pragma once

#include <chrono>
#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

#include "peer_segments.h"

namespace titan::cpu {

/// Implements all of Backend, bitwise equal to gloo: all-reduces add in the order of gloo's ring
/// (see RingBlocks), reduce-scatters in rank order. Rejects the dtypes that gloo rejects.
std::shared_ptr<dist::Backend> make_shared_memory_backend(Members members,
                                                          std::chrono::milliseconds timeout);

}  // namespace titan::cpu
