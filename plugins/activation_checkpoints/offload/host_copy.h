// One piece of device memory that waits in host memory. Copies run beside the computation where the
// device has streams.
#pragma once

#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "transfers.h"

namespace titan::offload {

/// Brings memory to the host and back. On a CPU both are plain copies; on the meta device nothing
/// is copied, and memory is held as a device with streams holds it.
///
/// The copy holds its source until let_go(): the allocator's record of streams would hold it until
/// the copy is done, which is late where the host runs ahead.
class HostCopy final : public Leaving {
 public:
  /// Starts copying `flat` (one dimension, contiguous) to the host.
  HostCopy(const at::Tensor& flat, std::shared_ptr<Transfers> transfers);
  ~HostCopy() override;
  HostCopy(const HostCopy&) = delete;

  int64_t bytes() const {
    return num_elements_ * static_cast<int64_t>(options_.dtype().itemsize());
  }
  bool is_leaving() const override { return source_.defined(); }
  /// Whether start_return() ahead of take() would start a copy that overlaps with the computation.
  bool can_return_early() const {
    return !source_.defined() && !returned_.defined() && !options_.device().is_cpu();
  }

  void let_go() override;
  /// Starts the way back, after what the current stream was given so far.
  void start_return();
  /// The memory on its device; the current stream may use it.
  at::Tensor take();

 private:
  at::Tensor on_host() const;
  void use_returned();

  at::TensorOptions options_;  // of the source
  int64_t num_elements_ = 0;
  std::shared_ptr<Transfers> transfers_;  // the graph outlives the transform's own hold
  HostPiece host_;                        // empty on a CPU and on the meta device
  at::Tensor source_, returned_;
  at::Tensor on_cpu_;
  bool is_unused_ = false;                    // returned, and nobody has taken it
  std::optional<c10::Stream> stream_;         // that `source_`, later `returned_`, belongs to
  std::shared_ptr<c10::Event> there_, back_;  // null where nothing overlaps
};

}  // namespace titan::offload
