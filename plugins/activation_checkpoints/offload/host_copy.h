// One block of device memory that is offloaded to host memory. Copies overlap with the computation
// if the device has streams. Used by BlockMemory.
#pragma once

#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "transfers.h"

namespace titan::offload {

/// Copies memory to the host and back. On a CPU both are plain copies. On the meta device nothing
/// is copied, and memory is held as on a device with streams.
///
/// Holds its source until let_go(). The allocator's record_stream would hold it until the host sees
/// the end of the copy, which is late if the host runs ahead.
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
  /// Whether start_return() before take() would start a copy that overlaps with the computation.
  bool can_return_early() const {
    return !source_.defined() && !returned_.defined() && !options_.device().is_cpu();
  }

  void let_go() override;
  /// Starts the copy back to the device, after the work queued on the current stream so far.
  void start_return();
  /// The memory on its device, ready for use by the current stream.
  at::Tensor take();

 private:
  at::Tensor on_host() const;
  void use_returned();

  at::TensorOptions options_;  // of the source
  int64_t num_elements_ = 0;
  std::shared_ptr<Transfers> transfers_;  // shared: the graph may outlive the transform
  HostPiece host_;                        // empty on a CPU and on the meta device
  at::Tensor source_, returned_;
  at::Tensor on_cpu_;
  bool is_unused_ = false;                    // copied back and not taken yet
  std::optional<c10::Stream> stream_;         // the stream of `source_`, later of `returned_`
  std::shared_ptr<c10::Event> there_, back_;  // ends of the copies; null if nothing overlaps
};

}  // namespace titan::offload
