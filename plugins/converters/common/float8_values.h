// Table from the bytes of a float8 format to float. Used by the emulation of float8 on the CPU.
#pragma once

#include <array>
#include <cstdint>

namespace titan::quantized {

/// The values of all 256 bytes. `Format`: c10::Float8_e4m3fn or c10::Float8_e5m2.
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
