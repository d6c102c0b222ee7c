// Optional interface of devices that record the work they are given and do it again as one piece of
// work. Used by the trainer with [compile] graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(device_graphs);

namespace titan {

/// Recorded work: the same operations on the same memory. The memory that it took belongs to it and
/// goes back when it is destroyed, before the device.
class TITAN_API DeviceGraph {
 public:
  virtual ~DeviceGraph();
  /// [trainer thread] Gives it to the current stream once more; nobody waits. What tensors of the
  /// recorded work hold is overwritten.
  virtual void replay() = 0;
};

/// Optional: a Device that derives from this can record.
class TITAN_API DeviceGraphs {
 public:
  virtual ~DeviceGraphs();
  /// [trainer thread] Records what `work` gives to the device, on a stream of its own. `work` is
  /// called once or more, starts from the same each time, and gives each time the same operations
  /// on the same memory, but for what it takes itself; it neither waits for the device nor copies
  /// from or to the host. What it computes is there after the first replay. Throws what `work`
  /// throws, or an Error for work that cannot be recorded; the device goes on as if nothing had
  /// been asked.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) = 0;
};

/// Optional: a transform derives from this whose layers do in forward or backward what no graph
/// keeps: copy to the host, read a number, decide by it. Steps of its runs are not replayed. A
/// GradientReducer is taken for one unless it derives from this and names nothing: then what it
/// does between begin_step and finish_gradients is recorded with the step, and a replay does what
/// the device did and calls none of its functions.
class TITAN_API HostWork {
 public:
  virtual ~HostWork();
  /// [after apply] What it does, for the log: "activations go to the host". Empty: nothing of that
  /// kind as it is configured.
  virtual std::string host_work() const = 0;
};

}  // namespace titan
