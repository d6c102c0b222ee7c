// Serializes the protobuf messages of a TensorBoard event file. Used by the tensorboard logger.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <titan/logger.h>

namespace titan::loggers {

/// Each function returns one serialized message `Event`. `wall_time` is in seconds since 1970.

/// The first event of every file.
std::string version_event(double wall_time);
/// A run starts at `step`: readers drop this step and later ones of earlier files in the folder.
std::string session_start_event(double wall_time, int64_t step);
/// All scalars of a step. TensorBoard stores them in fp32.
std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars);
/// A text, shown as Markdown.
std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text);

}  // namespace titan::loggers
