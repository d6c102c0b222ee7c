// Times launches on a device. Used by the mode `speed`.
#pragma once

#include <functional>
#include <vector>

#include "probe.h"

namespace titan::probe {

using Launch = std::function<void()>;

struct Timing {
  double median, fastest;  ///< seconds
};

/// Times launches one by one. On a GPU a matrix product of some milliseconds runs first, so that
/// the host is ahead and events measure only the GPU's time.
class Stopwatch {
 public:
  Stopwatch(Device& device, bool is_small);

  /// `launches` take turns, so that no launch finds its inputs in the cache from the one before.
  Timing time(const std::vector<Launch>& launches);

 private:
  void block();
  std::vector<double> by_clock(const std::vector<Launch>& launches) const;
  std::vector<double> by_events(const std::vector<Launch>& launches, double host);

  Device& device_;
  size_t num_launches_;
  Tensor blocker_, product_;
  double blocker_seconds_ = 1;
};

}  // namespace titan::probe
