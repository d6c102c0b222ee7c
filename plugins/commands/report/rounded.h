// Rounds numbers for the page; non-finite values become text. Used by titan report.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <titan/value.h>

namespace titan::commands {

/// `value` to 7 significant digits; "nan", "inf" or "-inf" when it is not finite.
inline Value rounded(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::fabs(value) < 1e15) return static_cast<int64_t>(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

/// For seconds since a recent time: to the microsecond.
inline Value microseconds(double seconds) {
  return rounded(std::round(seconds * 1e6) / 1e6);
}

/// For seconds since 1970: to the millisecond.
inline Value point_in_time(double seconds) {
  return std::isfinite(seconds) ? Value(std::round(seconds * 1e3) / 1e3) : Value(0);
}

}  // namespace titan::commands
