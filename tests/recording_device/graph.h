// Graphs of the recording device: recorded operations that run again on the same memory. Used by
// the code that computes and copies, and by the device.
#pragma once

#include <functional>
#include <memory>

#include <titan/device_graphs.h>

namespace titan::recording {

/// Like DeviceGraphs::capture; `work` runs once. Host waits and copies from or to the host inside
/// are mistakes, because a GPU refuses them.
std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work);

/// Records a repetition of the last computation, which reads and writes the same addresses. Does
/// nothing unless a graph is recorded.
void record_for_replay(std::function<void()> again);
bool is_capturing();

/// Called when device memory was allocated. During a recording the block belongs to the graph: a
/// replay writes there again, so returned blocks stay until the graph ends. (CUDA reuses them
/// within the graph; here every block has its own address.)
void taken(const void* memory);
/// Returns memory by calling `free`, now or when its graph ends.
void give_back(const void* memory, std::function<void()> free);

}  // namespace titan::recording
