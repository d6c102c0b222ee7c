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

/// What was just computed, done again: reads and writes the same memory, which it holds. Does
/// nothing unless a graph is recorded.
void record_for_replay(std::function<void()> again);
bool is_capturing();

}  // namespace titan::recording
