// Units of displayed numbers.
#pragma once

namespace titan {

inline constexpr double kMiB = 1024.0 * 1024.0;
inline constexpr double kGiB = 1024.0 * kMiB;

}  // namespace titan
