// Counts the bytes of all tensors in host memory as they come and go: what GPUs report as allocated
// memory. Used by the cpu device where [device] count_tensors or somebody who wants the history of
// the memory asks for it.
#pragma once

#include <cstdint>

#include <titan/memory_history.h>

namespace titan::cpu {

/// For the whole process. Thread-safe.
class TensorCount {
 public:
  /// From now on LibTorch's host memory is counted; what exists already is not.
  static void start();
  /// Tells `listener`, which lives as long as the process, of each block from now on.
  static void tell(MemoryListener& listener);
  /// Bytes that tensors asked for, at most at once since the last reset.
  static int64_t peak();
  static void reset_peak();
};

}  // namespace titan::cpu
