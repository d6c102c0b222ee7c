// What tensors on the meta device would take if they had memory: counted as they come and go. Used
// where ranks are played.
#pragma once

#include <cstdint>

namespace titan::core {

/// Counts for the whole process, on any thread.
class MetaMemory {
 public:
  /// From now on tensors that are made on the meta device are counted.
  static void start_counting();
  /// Bytes of those that exist.
  static int64_t live();
  /// The most at once since the last reset.
  static int64_t peak();
  static void reset_peak();
};

}  // namespace titan::core
