// Collectives on the CPU between ranks of one machine, through memory that they share.
#pragma once

#include <chrono>
#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

#include "meeting.h"

namespace titan::cpu {

/// Every operation of Backend, with the bits that gloo's has: all-reduces add up in the order of
/// its ring (see RingBlocks), reduce-scatters in rank order. Refuses the types that gloo refuses.
std::shared_ptr<dist::Backend> make_shared_memory_backend(Members members,
                                                          std::chrono::milliseconds timeout);

}  // namespace titan::cpu
