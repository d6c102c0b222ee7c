// Work of a GPU that is recorded once and given again as one graph.
#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>
#include <titan/device_graphs.h>

namespace titan::cuda {

/// As DeviceGraphs::capture. `work` runs twice: first for real on the stream that is recorded, so
/// that libraries have taken their handles and workspaces there.
std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work, c10::Device device);

}  // namespace titan::cuda
