// A run's state from a rank that has it, instead of from a file: for a replica that joins, or that
// was left behind. Both ranks hold the same rectangles: they are at the same place of equal
// layouts.
#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/Device.h>
#include <titan/dist/group.h>
#include <titan/value.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// Sends `tensors` (state.h: weights and states) and `numbers`, whatever else belongs to them
/// (steps, data position, generators), to `peer`, which calls take_state at the same time.
/// Everything stays as it is until it returns. `device`: where the group communicates. Throws a
/// data Error with the peer's reason when it cannot use them.
void give_state(const std::vector<StateTensor>& tensors, const Value& numbers,
                const dist::Group& group, int peer, c10::Device device);

/// Fills `tensors` with what `peer` gives, bit for bit, and returns its numbers. Nothing is changed
/// when the two do not hold the same rectangles in the same types: one data Error lists what
/// differs. Each tensor has to arrive with the hash that it left with before it is taken over;
/// after a data Error that names one that has not, some are the peer's and some are not, so that
/// the caller asks again, or another peer.
Value take_state(const std::vector<StateTensor>& tensors, const dist::Group& group, int peer,
                 c10::Device device);

}  // namespace titan::core
