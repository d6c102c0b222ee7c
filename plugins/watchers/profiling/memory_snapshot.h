// Writes a memory history in PyTorch's snapshot format, for pytorch.org/memory_viz and
// torch.cuda._memory_viz. Used by memory_profile for devices that write no snapshots themselves.
#pragma once

#include <string>
#include <vector>

#include "memory_log.h"

namespace titan::profiling {

/// One entry of "device_traces".
struct SnapshotEntry {
  const MemoryEvent* event;
  const char* action;  ///< "alloc", "free_requested", "free_completed", "oom"
};
/// The last `max_entries`, oldest first; a free makes two entries. `history` outlives them.
std::vector<SnapshotEntry> snapshot_entries(const MemoryHistoryCopy& history, size_t max_entries);

/// A pickle of {"segments", "device_traces"}. Each allocated block is its own segment, on device 0.
/// The viewers group by frames, innermost first: modules (with the pass as the file), the rank's
/// activity, and the use of the memory.
std::string to_memory_snapshot(const MemoryHistoryCopy& history, size_t max_entries);

/// "parameters", "optimizer states", ...
const char* name_of_use(MemoryUse use);

}  // namespace titan::profiling
