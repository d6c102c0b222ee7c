// By what the ranks of a group talk to each other.
#pragma once

#include <atomic>
#include <memory>

#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>

namespace titan::cpu {

enum class Transport { automatic, gloo, shared_memory };

/// Connects the groups of a device and logs, once each, by what.
class Connector {
 public:
  explicit Connector(Transport transport) : transport_(transport) {}

  /// Through shared memory where all ranks of the group are on one machine and may share some, else
  /// over gloo. Throws a distributed Error when the ranks do not meet in time, or are to share
  /// memory and cannot. Thread: any.
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint);

 private:
  Transport transport_;
  std::atomic<bool> said_shared_memory_ = false, said_gloo_ = false;
};

}  // namespace titan::cpu
