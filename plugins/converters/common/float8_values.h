// The numbers that the bytes of a float8 format stand for. Used where float8 is emulated on the
// CPU.
#pragma once

#include <array>
#include <cstdint>

namespace titan::quantized {

/// Of all 256 bytes. `Format`: c10::Float8_e4m3fn or c10::Float8_e5m2.
template <class Format>
const std::array<float, 256>& values_of_bytes() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (int byte = 0; byte < 256; ++byte)
      all[static_cast<size_t>(byte)] =
          static_cast<float>(Format(static_cast<uint8_t>(byte), Format::from_bits()));
    return all;
  }();
  return values;
}

}  // namespace titan::quantized
