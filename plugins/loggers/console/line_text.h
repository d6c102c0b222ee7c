// Formats numbers and colours of the console logger's lines. Used by console_line.cpp and
// progress_line.cpp.
#pragma once

#include <string>

namespace titan::loggers {

enum class Style { plain, colored };

inline constexpr const char* kRed = "\033[31m";
inline constexpr const char* kGreen = "\033[32m";
inline constexpr const char* kYellow = "\033[33m";
inline constexpr const char* kBlue = "\033[34m";
inline constexpr const char* kMagenta = "\033[35m";
inline constexpr const char* kCyan = "\033[36m";
inline constexpr const char* kOrange = "\033[38;2;180;60;0m";
inline constexpr const char* kTurquoise = "\033[38;2;54;234;195m";
inline constexpr const char* kResetColor = "\033[39m";

std::string pad_left(std::string text, size_t width);
/// With `precision` digits after the decimal point, in any locale; "nan" without a sign.
std::string fixed(double value, int precision, size_t width = 0);
/// The same with thousands separators: "1,843".
std::string with_thousands(double value, int precision);

}  // namespace titan::loggers
