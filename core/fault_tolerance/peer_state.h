// Copies a run's state from another rank instead of from a file, for a replica that joins or has
// fallen behind. Both ranks hold the same rectangles: they have the same coordinates in equal
// layouts.
#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/Device.h>
#include <titan/dist/group.h>
#include <titan/value.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// Sends `tensors` (state.h: weights and states) and `numbers` (steps, data position, generators)
/// to `peer`, which calls take_state at the same time. The caller changes none of it until this
/// returns. `device`: where the group communicates. Throws a data Error with the peer's reason when
/// it cannot use them.
void give_state(const std::vector<StateTensor>& tensors, const Value& numbers,
                const dist::Group& group, int peer, c10::Device device);

/// Fills `tensors` with those of `peer`, bit for bit, and returns the peer's numbers. When the two
/// ranks do not hold the same rectangles in the same dtypes, nothing is changed and one data Error
/// lists the differences. A tensor is only replaced when its hash on arrival equals the sender's. A
/// data Error names the tensors whose hash differs; then some tensors are the peer's and some are
/// not, and the caller has to repeat the transfer, from this peer or another.
Value take_state(const std::vector<StateTensor>& tensors, const dist::Group& group, int peer,
                 c10::Device device);

}  // namespace titan::core
