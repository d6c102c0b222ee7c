// Memory and streams of the recording device.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include "stream_order.h"

namespace titan::recording {

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();

/// Turns the memory of a host tensor into device memory of the current stream.
c10::DataPtr adopt(const c10::Storage& host);

StreamId current_stream();

/// Registers the device with LibTorch: streams and events, allocators, operations. At most once per
/// process.
void register_backend();

}  // namespace titan::recording
