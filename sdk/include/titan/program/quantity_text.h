// Counts, bytes and times as people read them. Used by whatever says how far it is and what it did.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <titan/export.h>

namespace titan {

/// "1,234,567"
TITAN_API std::string with_commas(int64_t count);
/// "41.2 M" of 41,234,567; three digits that count.
TITAN_API std::string short_count(int64_t count);
/// "1.23 GB", in powers of 1000; three digits that count.
TITAN_API std::string bytes_text(double bytes);
/// "12 s", "3:07", "2:03:07", "3 d 2:01:05"
TITAN_API std::string duration_text(double seconds);
/// The number to print: a NaN without its sign, which streams and printf would show as "-nan".
inline double without_nan_sign(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

}  // namespace titan
