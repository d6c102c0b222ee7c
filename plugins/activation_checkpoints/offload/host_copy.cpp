#include "host_copy.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace titan::offload {
namespace {

using c10::impl::VirtualGuardImpl;

bool has_streams(c10::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

/// The stream that copies of a device run on: one for both ways, so that they stay in order.
c10::Stream copy_stream(c10::Device device) {
  thread_local std::optional<c10::Stream> stream;
  if (!stream || stream->device() != device)
    stream = VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  return *stream;
}

/// Whatever `first` has been given so far comes before what `second` is given from now on.
void order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(first.device_type());
  event.record(first);
  event.block(second);
}

}  // namespace

HostCopy::HostCopy(const at::Tensor& flat, bool pins)
    : options_(flat.options().requires_grad(false)), num_elements_(flat.numel()) {
  const c10::Device device = flat.device();
  if (device.is_meta()) return;
  host_ = at::empty({num_elements_},
                    options_.device(c10::kCPU).pinned_memory(pins && has_streams(device)));
  if (!has_streams(device)) {
    host_.copy_(flat);
    return;
  }
  const VirtualGuardImpl guard(device.type());
  const c10::Stream copies = copy_stream(device);
  order(guard.getStream(device), copies);
  const c10::StreamGuard on_copies(copies);
  host_.copy_(flat, /*non_blocking=*/true);
  guard.recordDataPtrOnStream(flat.storage().data_ptr(), copies);
  there_.emplace(device.type());
  there_->record(copies);
}

void HostCopy::start_return() {
  if (returned_.defined()) return;
  const c10::Device device = options_.device();
  if (!has_streams(device)) {
    returned_ = at::empty({num_elements_}, options_);
    if (host_.defined()) returned_.copy_(std::exchange(host_, at::Tensor()));
    return;
  }
  const VirtualGuardImpl guard(device.type());
  const c10::Stream current = guard.getStream(device), copies = copy_stream(device);
  returned_ = at::empty({num_elements_}, options_);  // of the current stream's memory
  order(current, copies);
  const c10::StreamGuard on_copies(copies);
  there_->block(copies);
  returned_.copy_(host_, /*non_blocking=*/true);
  guard.recordDataPtrOnStream(returned_.storage().data_ptr(), copies);
  back_.emplace(device.type());
  back_->record(copies);
}

at::Tensor HostCopy::take() {
  start_return();
  if (back_) back_->block(VirtualGuardImpl(options_.device().type()).getStream(options_.device()));
  return returned_;
}

}  // namespace titan::offload
