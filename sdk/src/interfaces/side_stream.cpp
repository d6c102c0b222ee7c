#include <titan/side_stream.h>

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace titan {

using c10::impl::VirtualGuardImpl;

bool has_streams(c10::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

c10::Stream current_stream(c10::Device device) {
  return VirtualGuardImpl(device.type()).getStream(device);
}

void put_in_order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(first.device_type());
  event.record(first);
  event.block(second);
}

SideStream::SideStream(c10::Device device, Priority priority) {
  if (has_streams(device))
    stream_ = VirtualGuardImpl(device.type())
                  .getStreamFromGlobalPool(device, /*isHighPriority=*/priority == Priority::high);
}

SideStreamScope::SideStreamScope(const SideStream& side) {
  if (!side.exists()) return;
  put_in_order(current_stream(side.get().device()), side.get());
  guard_.emplace(side.get());
}

}  // namespace titan
