// One piece of device memory that waits in host memory. Copies run beside the computation where the
// device has streams.
#pragma once

#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace titan::offload {

/// Brings memory to the host and back. On a CPU both are plain copies; on the meta device
/// nothing is copied and nothing counted.
class HostCopy {
 public:
  /// Starts copying `flat` (one dimension, contiguous) to the host; its memory is free to others as
  /// soon as its holders let go of it.
  HostCopy(const at::Tensor& flat, bool pins);

  /// Starts the way back unless it was started.
  void start_return();
  /// The memory on its device; the current stream may use it.
  at::Tensor take();

 private:
  at::TensorOptions options_;  // of the source
  int64_t num_elements_ = 0;
  at::Tensor host_;
  at::Tensor returned_;
  std::optional<c10::Event> there_, back_;  // undefined where nothing runs beside
};

}  // namespace titan::offload
