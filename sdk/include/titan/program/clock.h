// Clocks for measurements and for displayed times.
#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>

namespace titan {

/// Seconds of a monotonic clock.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// `time` of a file as seconds since 1970.
inline double wall_seconds(std::filesystem::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// `seconds` since 1970 as local time, in a strftime `format` whose result is shorter than 32
/// characters.
inline std::string local_time_text(double seconds, const char* format) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  ::localtime_r(&time, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), format, &local);
  return text.data();
}

}  // namespace titan
