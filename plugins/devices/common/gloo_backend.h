// Collectives on the CPU over gloo, which is part of LibTorch. Used by the cpu device.
#pragma once

#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cpu {

/// Connects the group. On one machine gloo uses the loopback interface, unless GLOO_SOCKET_IFNAME
/// names another. Between machines it uses that interface or the address of the host name. Throws a
/// distributed Error when the ranks do not connect in time.
std::shared_ptr<dist::Backend> connect_gloo(const dist::Endpoint& endpoint);

}  // namespace titan::cpu
