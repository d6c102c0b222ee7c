#include "host_copy.h"

#include <utility>

#include <ATen/ops/empty.h>

#include <titan/side_stream.h>

namespace titan::offload {
namespace {

std::shared_ptr<c10::Event> record(const SideStream& side) {
  auto event = std::make_shared<c10::Event>(side.get().device_type());
  event->record(side.get());
  return event;
}

}  // namespace

HostCopy::HostCopy(const at::Tensor& flat, std::shared_ptr<Transfers> transfers)
    : options_(flat.options().requires_grad(false)),
      num_elements_(flat.numel()),
      transfers_(std::move(transfers)) {
  const c10::Device device = flat.device();
  if (device.is_cpu()) {
    on_cpu_ = at::empty({num_elements_}, options_);
    on_cpu_.copy_(flat);
    return;
  }
  source_ = flat;
  transfers_->add_leaving(bytes());
  if (!has_streams(device)) return;
  stream_ = current_stream(device);
  host_ = transfers_->take_host(bytes());
  const SideStream& copies = transfers_->to_host(device);
  const SideStreamScope on_copies(copies);
  if (host_.read) std::exchange(host_.read, nullptr)->block(copies.get());
  on_host().copy_(flat, /*non_blocking=*/true);
  there_ = record(copies);
}

HostCopy::~HostCopy() {
  try {
    let_go();
    use_returned();
    if (host_.bytes.defined()) transfers_->give_back(std::move(host_));
  } catch (...) {  // the device has failed; the run ends with that error
  }
}

at::Tensor HostCopy::on_host() const {
  return host_.bytes.narrow(0, 0, bytes()).view(c10::typeMetaToScalarType(options_.dtype()));
}

void HostCopy::let_go() {
  if (!source_.defined()) return;
  if (there_) there_->block(*stream_);
  source_.reset();
  transfers_->add_leaving(-bytes());
}

void HostCopy::start_return() {
  if (source_.defined() || returned_.defined()) return;
  const c10::Device device = options_.device();
  returned_ = at::empty({num_elements_}, options_);  // allocated on the current stream
  if (device.is_cpu()) {
    returned_.copy_(std::exchange(on_cpu_, at::Tensor()));
    return;
  }
  transfers_->add_returned(bytes());
  is_unused_ = true;
  if (!has_streams(device)) return;
  stream_ = current_stream(device);
  const SideStream& copies = transfers_->to_device(device);
  const SideStreamScope on_copies(copies);
  there_->block(copies.get());
  returned_.copy_(on_host(), /*non_blocking=*/true);
  back_ = record(copies);
  host_.read = back_;
  transfers_->give_back(std::exchange(host_, {}));
}

void HostCopy::use_returned() {
  if (!is_unused_) return;
  is_unused_ = false;
  transfers_->add_returned(-bytes());
  if (back_) back_->block(*stream_);
}

at::Tensor HostCopy::take() {
  if (source_.defined()) {  // still on the device
    returned_ = source_;
    let_go();
  }
  start_return();
  use_returned();
  if (stream_)
    if (const c10::Stream current = current_stream(options_.device()); current != *stream_)
      (back_ ? back_ : there_)->block(current);
  return returned_;
}

}  // namespace titan::offload
