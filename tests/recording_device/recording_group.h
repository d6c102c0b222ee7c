// Collectives of the recording device: gloo's, on a stream of their own as NCCL's are.
#pragma once

#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::recording {

/// Tensors of the host go straight to gloo.
std::shared_ptr<dist::Backend> connect_recorded(const dist::Endpoint& endpoint);

}  // namespace titan::recording
