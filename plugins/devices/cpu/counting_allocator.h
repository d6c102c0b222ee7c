// Counts the bytes of all tensors in host memory as they come and go: what GPUs report as allocated
// memory. Used by the cpu device where [device] count_tensors asks for it.
#pragma once

#include <cstdint>

namespace titan::cpu {

/// For the whole process. Thread-safe.
class TensorCount {
 public:
  /// From now on LibTorch's host memory is counted; what exists already is not.
  static void start();
  /// Bytes that tensors asked for, at most at once since the last reset.
  static int64_t peak();
  static void reset_peak();
};

}  // namespace titan::cpu
