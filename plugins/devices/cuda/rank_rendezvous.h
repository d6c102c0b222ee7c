// Waits until all ranks of a group have arrived, before NCCL connects them. Used by nccl_backend.
#pragma once

#include <string>

#include <titan/dist/endpoint.h>

namespace titan::cuda {

/// Returns when all ranks of the group have arrived. NCCL's own set-up has no time limit, so no
/// rank may enter it before. `store`: the group's own keys. `gpu`: identifies this rank's GPU among
/// all GPUs of the run. Throws a distributed Error that names the ranks that did not arrive within
/// the endpoint's timeout, or two ranks with one GPU. Writes a few keys per rank, whatever the
/// size.
void await_all_ranks(c10d::Store& store, const dist::Endpoint& endpoint, const std::string& gpu);

}  // namespace titan::cuda
