// The purpose of memory, declared by the code that allocates it. Memory estimates and reports sum
// bytes by purpose.
#pragma once

#include <titan/export.h>

namespace titan {

enum class MemoryUse {
  temporary,   ///< of the running operation, and everything without a declared use
  parameters,  ///< shards
  gradients,   ///< of shards, and of whole parameters until they are reduced to shards
  optimizer_states,
  activations,    ///< kept by the forward for the backward
  communication,  ///< gathered parameters, buffers of collectives
};

/// While alive, allocations of this thread are for `use`. Scopes nest; only the innermost counts.
class TITAN_API MemoryUseScope {
 public:
  explicit MemoryUseScope(MemoryUse use);
  ~MemoryUseScope();
  MemoryUseScope(const MemoryUseScope&) = delete;
  static MemoryUse current();

 private:
  MemoryUse before_;
};

}  // namespace titan
