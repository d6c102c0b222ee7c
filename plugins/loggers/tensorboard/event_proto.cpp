// See event_proto.h. Field numbers are those of TensorFlow's event.proto, summary.proto and
// tensor.proto.
#include "event_proto.h"

#include <cmath>
#include <limits>

#include "../common/protobuf.h"

namespace titan::loggers {
namespace {

Message event(double wall_time, int64_t step) {
  Message event;
  event.number(1, wall_time);
  if (step != 0) event.integer(2, step);
  return event;
}

float to_float(double value) {
  // the conversion of a double beyond fp32's range is undefined in C++
  if (std::abs(value) > std::numeric_limits<float>::max() && std::isfinite(value)) {
    constexpr double kRoundsToMax = 0x1.ffffffp127;  // half a step above the greatest float
    const float limit = std::abs(value) < kRoundsToMax ? std::numeric_limits<float>::max()
                                                       : std::numeric_limits<float>::infinity();
    return std::copysign(limit, static_cast<float>(std::copysign(1.0, value)));
  }
  return static_cast<float>(value);
}

}  // namespace

std::string version_event(double wall_time) {
  return event(wall_time, 0).bytes(3, "brain.Event:2").str();
}

std::string session_start_event(double wall_time, int64_t step) {
  constexpr int kStart = 1;
  return event(wall_time, step).message(7, Message().integer(1, kStart)).str();
}

std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  Message summary;
  for (const Scalar& scalar : scalars)
    summary.message(1, Message().bytes(1, scalar.tag).number32(2, to_float(scalar.value)));
  return event(wall_time, step).message(5, summary).str();
}

std::string text_event(double wall_time, int64_t step, std::string_view tag,
                       std::string_view text) {
  constexpr int kString = 7, kTensorData = 2;
  const Message shape = Message().message(2, Message().integer(1, 1));
  const Message tensor = Message().integer(1, kString).message(2, shape).bytes(8, text);
  const Message metadata = Message().message(1, Message().bytes(1, "text")).integer(4, kTensorData);
  const Message value = Message().bytes(1, tag).message(8, tensor).message(9, metadata);
  return event(wall_time, step).message(5, Message().message(1, value)).str();
}

}  // namespace titan::loggers
