// A history of memory in PyTorch's snapshot format, which pytorch.org/memory_viz and
// torch.cuda._memory_viz open. Used by memory_profile for devices that write none of their own.
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
/// The last `max_entries`, oldest first; a block that goes makes two. `history` outlives them.
std::vector<SnapshotEntry> snapshot_entries(const MemoryHistoryCopy& history, size_t max_entries);

/// A pickle of {"segments", "device_traces"}. Each block that is there is a segment of its own; the
/// device is number 0. Frames, innermost first, are what the tools group by: modules (with the pass
/// as the file), what the rank was working on, and what the memory is for.
std::string to_memory_snapshot(const MemoryHistoryCopy& history, size_t max_entries);

/// "parameters", "optimizer states", ...
const char* name_of_use(MemoryUse use);

}  // namespace titan::profiling
