#include <titan/program/quantity_text.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

namespace titan {
namespace {

template <class... Arguments>
std::string formatted(const char* pattern, Arguments... arguments) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

/// Three digits of `number` in the first of `units` in which it is below 1000; each unit is 1000
/// times the one before. No decimals in the first.
std::string scaled(double number, std::span<const char* const> units) {
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < units.size(); ++unit) number /= 1000;
  const int decimals = unit == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return formatted("%.*f%s", decimals, number, units[unit]);
}

}  // namespace

std::string with_commas(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool is_inside = i > 0 && digits[i - 1] != '-';
    if (is_inside && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string short_count(int64_t count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  return scaled(static_cast<double>(count), kUnits);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB", " PB"};
  return scaled(bytes, kUnits);
}

std::string duration_text(double seconds) {
  constexpr double kLongest = 3.6e12;  // longer values are no measurements
  const auto all = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, kLongest)));
  const auto days = static_cast<long long>(all / 86400);
  const auto hours = static_cast<int>(all / 3600 % 24), minutes = static_cast<int>(all / 60 % 60),
             rest = static_cast<int>(all % 60);
  if (days) return formatted("%lld d %d:%02d:%02d", days, hours, minutes, rest);
  if (hours) return formatted("%d:%02d:%02d", hours, minutes, rest);
  return minutes ? formatted("%d:%02d", minutes, rest) : formatted("%d s", rest);
}

}  // namespace titan
