// What memory is for, told by whoever allocates it: memory estimates and reports add up by it.
#pragma once

#include <titan/export.h>

namespace titan {

enum class MemoryUse {
  temporary,   ///< of the operation that is running, and whatever nobody has named
  parameters,  ///< shards
  gradients,   ///< of shards, and of whole parameters until they are reduced to shards
  optimizer_states,
  activations,    ///< kept by the forward for the backward
  communication,  ///< gathered parameters, buffers of collectives
};

/// While alive, what this thread allocates is for `use`; the innermost scope alone counts.
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
