// The highest moment of memory as a table for people. Used by memory_profile.
#pragma once

#include <string>
#include <vector>

#include "memory_log.h"

namespace titan::profiling {

/// One row per layer in the order of `layers`, one more for what is outside of them, one column per
/// use that has any bytes; rows and columns add up to the peak. MiB.
std::string memory_table(const MemoryPeakReport& peak, const std::vector<std::string>& layers);

}  // namespace titan::profiling
