// See line_text.h.
#include "line_text.h"

#include <charconv>
#include <cmath>

namespace titan::loggers {

std::string pad_left(std::string text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string fixed(double value, int precision, size_t width) {
  if (std::isnan(value)) return pad_left("nan", width);  // to_chars would show the sign
  char buffer[400];  // the greatest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, precision).ptr;
  return pad_left(std::string(buffer, end), width);
}

std::string with_thousands(double value, int precision) {
  std::string text = fixed(value, precision);
  if (!std::isfinite(value)) return text;
  const size_t point = text.find('.');
  const size_t first_digit = text[0] == '-' ? 1 : 0;
  for (size_t at = point == std::string::npos ? text.size() : point; at > first_digit + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

}  // namespace titan::loggers
