// Formats one console line, with torchtitan's labels and colours. Used by the console logger.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <titan/logger.h>

#include "line_text.h"

namespace titan::loggers {

/// One line with its newline:
///
///   step: 10  loss:  7.36542  grad_norm:  1.2345  memory:  1.70GiB(21.25%)  tps: 1,843
///   tflops: 0.25  mfu: 1.20%
///
/// and, when "validation_metrics/loss" is among the scalars, instead or as a second line
///
///   validate step: 10  loss:  7.1234  memory:  1.70GiB(21.25%)  tps: 3,210
///
/// A part is left out when its scalar is absent; without any part there is no line. Memory is the
/// reserved peak, or the active peak on devices that reserve nothing. Does not depend on the
/// locale.
std::string format_console_line(int64_t step, std::span<const Scalar> scalars, Style style);

}  // namespace titan::loggers
