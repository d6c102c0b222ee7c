// Collectives of the recording device: gloo's, on a separate stream like NCCL's.
#pragma once

#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::recording {

/// Host tensors go directly to gloo.
std::shared_ptr<dist::Backend> connect_recorded(const dist::Endpoint& endpoint);

}  // namespace titan::recording
