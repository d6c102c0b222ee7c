// Formats numbers like printf. Used for the texts of titan bench.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace titan::commands {

/// At most 255 bytes.
template <class... Number>
std::string formatted(const char* format, Number... numbers) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

}  // namespace titan::commands
