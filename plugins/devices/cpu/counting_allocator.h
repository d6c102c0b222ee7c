// Counts the bytes of all tensors in host memory, as GPUs report allocated memory. Used by the cpu
// device when [device] count_tensors is set or the memory history is recorded.
#pragma once

#include <cstdint>

#include <titan/memory_history.h>

namespace titan::cpu {

/// For the whole process. Thread-safe.
class TensorCount {
 public:
  /// Counts LibTorch's host memory from now on, but not blocks that exist already.
  static void start();
  /// From now on reports each block to `listener`, which lives as long as the process.
  static void tell(MemoryListener& listener);
  /// Most bytes that tensors requested at one time since the last reset.
  static int64_t peak();
  static void reset_peak();
};

}  // namespace titan::cpu
