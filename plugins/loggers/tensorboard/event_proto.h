// The few protobuf messages of a TensorBoard event file, serialised. Used by the tensorboard
// logger.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <titan/logger.h>

namespace titan::loggers {

/// Each function gives one serialised message `Event`. `wall_time` is in seconds since 1970.

/// What every event file starts with.
std::string version_event(double wall_time);
/// A run starts at `step`: readers drop what earlier files of the folder hold of this step and
/// later ones.
std::string session_start_event(double wall_time, int64_t step);
/// All scalars of a step. TensorBoard keeps them in fp32.
std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars);
/// A text, shown as Markdown.
std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text);

}  // namespace titan::loggers
