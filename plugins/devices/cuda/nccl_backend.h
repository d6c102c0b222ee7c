// Collectives on GPUs over NCCL, which LibTorch's CUDA libraries contain. Used by the cuda device.
#pragma once

#include <memory>

#include <c10/core/Device.h>
#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cuda {

/// Connects the group; `device` is this rank's own. Blocks until all ranks have arrived, then
/// creates the communicator. Throws a distributed Error that names the ranks that did not arrive
/// within the endpoint's timeout, or two ranks that use the same GPU.
///
/// Operations run on a stream of the group's own, which waits for the current stream. `Work::wait`
/// makes the current stream wait and returns at once; that of a barrier returns when all ranks have
/// reached it. NCCL's watchdog detects an operation that exceeds the timeout, names it and ends the
/// process, unless TORCH_NCCL_ASYNC_ERROR_HANDLING says otherwise. NCCL has no tags: messages
/// between two ranks are received in the order in which they were sent.
std::shared_ptr<dist::Backend> connect_nccl(const dist::Endpoint& endpoint, c10::Device device);

}  // namespace titan::cuda
