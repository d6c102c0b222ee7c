// Formats counts, bytes and times for people. Used by progress lines and summaries.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <titan/export.h>

namespace titan {

/// "1,234,567"
TITAN_API std::string with_commas(int64_t count);
/// "41.2 M" for 41,234,567; three significant digits.
TITAN_API std::string short_count(int64_t count);
/// "1.23 GB", in powers of 1000; three significant digits.
TITAN_API std::string bytes_text(double bytes);
/// "12 s", "3:07", "2:03:07", "3 d 2:01:05"
TITAN_API std::string duration_text(double seconds);
/// The value to print: removes the sign of a NaN, which streams and printf would print as "-nan".
inline double without_nan_sign(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

}  // namespace titan
