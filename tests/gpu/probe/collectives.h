// Mode `collectives`: bandwidth between ranks, and whether the values are right.
#pragma once

#include <cstdint>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/value.h>

namespace titan::probe {

/// Bytes that each rank sends per second, by the formula of the operation: the fastest of ten.
/// Throws a distributed Error for a wrong value.
Value measure_collectives(Device& device, const dist::Group& world, int64_t mebibytes);

}  // namespace titan::probe
