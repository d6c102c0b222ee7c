// Collectives on the CPU over gloo, which LibTorch carries.
#pragma once

#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cpu {

/// Connects the group. On one machine over the loopback interface, unless GLOO_SOCKET_IFNAME names
/// another; between machines over that interface or the host name's address. Throws a distributed
/// Error when the ranks do not meet in time.
std::shared_ptr<dist::Backend> connect_gloo(const dist::Endpoint& endpoint);

}  // namespace titan::cpu
