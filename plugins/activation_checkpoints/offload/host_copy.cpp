#include "host_copy.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <titan/side_stream.h>

namespace titan::offload {
namespace {

/// What copies of a device run on: one stream for both ways, so that they stay in order.
const SideStream& copy_stream(c10::Device device) {
  thread_local std::optional<SideStream> stream;
  thread_local c10::Device of = c10::kCPU;
  if (!stream || of != device) stream.emplace(device), of = device;
  return *stream;
}

/// The allocator keeps the memory until `stream` has done what it was given by then.
void keep_for(const c10::Stream& stream, const at::Tensor& tensor) {
  c10::impl::VirtualGuardImpl(stream.device_type())
      .recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
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
  const SideStream& copies = copy_stream(device);
  const SideStreamScope on_copies(copies);
  host_.copy_(flat, /*non_blocking=*/true);
  keep_for(copies.get(), flat);
  there_.emplace(device.type());
  there_->record(copies.get());
}

void HostCopy::start_return() {
  if (returned_.defined()) return;
  const c10::Device device = options_.device();
  if (!has_streams(device)) {
    returned_ = at::empty({num_elements_}, options_);
    if (host_.defined()) returned_.copy_(std::exchange(host_, at::Tensor()));
    return;
  }
  const SideStream& copies = copy_stream(device);
  returned_ = at::empty({num_elements_}, options_);  // of the current stream's memory
  const SideStreamScope on_copies(copies);
  there_->block(copies.get());
  returned_.copy_(host_, /*non_blocking=*/true);
  keep_for(copies.get(), returned_);
  back_.emplace(device.type());
  back_->record(copies.get());
}

at::Tensor HostCopy::take() {
  start_return();
  if (back_) back_->block(current_stream(options_.device()));
  return returned_;
}

}  // namespace titan::offload
