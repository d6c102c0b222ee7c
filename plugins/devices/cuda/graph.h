// Captures work as a CUDA graph, which can be replayed as one launch. Used by the cuda device.
#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>
#include <titan/device_graphs.h>

namespace titan::cuda {

/// As DeviceGraphs::capture. `work` runs twice: first uncaptured on the capture stream, so that
/// libraries create their handles and workspaces for that stream.
std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work, c10::Device device);

}  // namespace titan::cuda
