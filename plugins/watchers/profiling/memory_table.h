// Formats the peak of memory as a table for people. Used by memory_profile.
#pragma once

#include <string>
#include <vector>

#include "memory_log.h"

namespace titan::profiling {

/// One row per layer in the order of `layers`, a row for memory outside of layers, one column per
/// use with any bytes; rows and columns add up to the peak. In MiB.
std::string memory_table(const MemoryPeakReport& peak, const std::vector<std::string>& layers);

}  // namespace titan::profiling
