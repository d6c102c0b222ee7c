// Graphs of the recording device: operations that are computed again on the memory on which they
// were recorded. Used by what computes operations and copies, and by the device.
#pragma once

#include <functional>
#include <memory>

#include <titan/device_graphs.h>

namespace titan::recording {

/// As DeviceGraphs::capture; `work` runs once. A wait of the host and a copy from or to the host
/// inside are mistakes, as a GPU refuses them.
std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work);

/// What was just computed, done again: reads and writes the same addresses. Does nothing unless a
/// graph is recorded.
void record_for_replay(std::function<void()> again);
bool is_capturing();

/// Memory of the device was taken. While a graph is recorded it comes from the graph's own: a
/// replay writes there again, so what goes back is there until the graph ends. (CUDA hands it out
/// again within the graph; here every piece has an address of its own.)
void taken(const void* memory);
/// Memory goes back by `free`, now or when the graph that it belongs to ends.
void give_back(const void* memory, std::function<void()> free);

}  // namespace titan::recording
