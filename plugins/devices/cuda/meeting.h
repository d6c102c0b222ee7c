// How the ranks of a group find out that all are there, before NCCL is asked to connect them.
#pragma once

#include <string>

#include <titan/dist/endpoint.h>

namespace titan::cuda {

/// Returns when all ranks of the group have come; NCCL's own set-up has no time limit, so nobody
/// enters it before. `store`: the group's own keys. `gpu`: which one this rank has, told apart from
/// all others of the run. Throws a distributed Error that names the ranks that did not come within
/// the endpoint's time, or two ranks with one GPU. A few keys per rank, whatever the size.
void meet(c10d::Store& store, const dist::Endpoint& endpoint, const std::string& gpu);

}  // namespace titan::cuda
