// Time for records and phases, by the same clock as titan/program/clock.h.
#pragma once

#include <chrono>

namespace titan {

/// Seconds of a clock that never jumps.
inline double monotonic_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace titan
