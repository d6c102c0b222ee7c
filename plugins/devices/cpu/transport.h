// Selects how the ranks of a group communicate: shared memory or gloo. Used by the cpu device.
#pragma once

#include <atomic>
#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cpu {

enum class Transport { automatic, gloo, shared_memory };

/// Connects the groups of a device. Logs the first use of each transport.
class Connector {
 public:
  explicit Connector(Transport transport) : transport_(transport) {}

  /// Uses shared memory if all ranks of the group are on one machine and may share memory, else
  /// gloo. Throws a distributed Error when the ranks do not connect in time, or when the transport
  /// is shared_memory and that is not possible. Thread: any.
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint);

 private:
  Transport transport_;
  std::atomic<bool> said_shared_memory_ = false, said_gloo_ = false;
};

}  // namespace titan::cpu
