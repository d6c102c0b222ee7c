// Optional interface of devices that can capture work and replay it as one graph (as CUDA graphs).
// Used by the trainer with [compile] graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(device_graphs);

namespace titan {

/// Captured work: the same operations on the same memory. The graph owns the memory that was
/// allocated during capture and frees it when destroyed. Destroyed before the device.
class TITAN_API DeviceGraph {
 public:
  virtual ~DeviceGraph();
  /// [trainer thread] Enqueues the graph on the current stream and returns without waiting.
  /// Overwrites the tensors of the captured work.
  virtual void replay() = 0;
};

/// Optional: a Device that derives from this can capture graphs.
class TITAN_API DeviceGraphs {
 public:
  virtual ~DeviceGraphs();
  /// [trainer thread] Captures the operations that `work` issues, on a separate stream. The device
  /// calls `work` once or more. Each call starts from the same state and issues the same operations
  /// on the same memory, except for memory that it allocates itself. `work` neither waits for the
  /// device nor copies from or to the host. Its results exist after the first replay.
  ///
  /// Throws what `work` throws, or an Error for work that cannot be captured. After an error the
  /// device continues as if capture had not been called.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) = 0;
};

/// Optional: a transform derives from this if its layers do host work in forward or backward that a
/// graph cannot capture: copies to the host, reading a number, branching on it. The trainer then
/// replays no steps of the run.
///
/// The trainer assumes host work in every GradientReducer, unless the reducer derives from this and
/// host_work() returns an empty text. In that case the device work between begin_step and
/// finish_gradients is captured with the step, and a replay calls none of the reducer's functions.
class TITAN_API HostWork {
 public:
  virtual ~HostWork();
  /// [after apply] The host work, for the log: "activations go to the host". Empty: none in this
  /// configuration.
  virtual std::string host_work() const = 0;
};

}  // namespace titan
