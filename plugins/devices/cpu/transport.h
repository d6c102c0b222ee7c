// By what the ranks of a group talk to each other.
#pragma once

#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cpu {

enum class Transport { automatic, gloo, shared_memory };

/// Connects the group: through shared memory where all its ranks are on one machine and may share
/// some, else over gloo. Logs which, and why not the other. Throws a distributed Error when the
/// ranks do not meet in time, or are to share memory and cannot.
std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint, Transport transport);

}  // namespace titan::cpu
