// Narrow floating-point types as bits and their conversions, which round to nearest with ties to
// even. Results are the same on a GPU, which uses its instructions if it has them, and in the
// emulator. Used by the kernels.
#pragma once

#include "grid.h"

namespace titan::cuda {

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};
/// 4 bits of exponent, 3 of mantissa, no infinities; largest 448.
struct Float8E4m3 {
  uint8_t bits;
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr float kLargest = 448;
};
/// 5 bits of exponent, 2 of mantissa; largest finite 57344.
struct Float8E5m2 {
  uint8_t bits;
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr float kLargest = 57344;
};

TITAN_DEVICE uint32_t bits_of(float value) {
#if TITAN_ON_DEVICE
  return __float_as_uint(value);
#else
  return __builtin_bit_cast(uint32_t, value);
#endif
}
TITAN_DEVICE float float_of(uint32_t bits) {
#if TITAN_ON_DEVICE
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}
TITAN_DEVICE bool is_finite(float value) {
  return (bits_of(value) & 0x7f800000u) != 0x7f800000u;
}

TITAN_DEVICE float widened(float value) {
  return value;
}
TITAN_DEVICE float widened(BFloat16 value) {
  return float_of(static_cast<uint32_t>(value.bits) << 16);
}
TITAN_DEVICE float widened(Half value) {
#if TITAN_ON_DEVICE
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(value.bits));
  return out;
#else
  return emulator::float_of_half(value.bits);
#endif
}

template <class T>
TITAN_DEVICE T rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const uint32_t bits = bits_of(value);
    if (value != value) return {0x7fc0};
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
  } else if constexpr (std::is_same_v<T, Half>) {
#if TITAN_ON_DEVICE
    Half out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
#else
    return {emulator::half_of_float(value)};
#endif
  } else {
    // float8: clamped to the range first, so that rounding cannot overflow
    const uint32_t sign = bits_of(value) >> 24 & 0x80;
    uint32_t bits = bits_of(value) & 0x7fffffffu;
    if (bits > 0x7f800000u) return {static_cast<uint8_t>(sign | 0x7f)};
    if (float_of(bits) > T::kLargest) bits = bits_of(T::kLargest);
    constexpr uint32_t kDropped = 23 - T::kMantissa;
    constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(127 - T::kBias + 1) << 23;
    if (bits < kSmallestNormal) {
      // one unit in the last place of `shift` is the distance between subnormal numbers
      constexpr uint32_t kShift = static_cast<uint32_t>(127 - T::kBias + 1 + kDropped) << 23;
      const uint32_t steps = bits_of(float_of(bits) + float_of(kShift)) - kShift;
      return {static_cast<uint8_t>(sign | steps)};
    }
    bits += (1u << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1);
    bits = (bits >> kDropped) - (static_cast<uint32_t>(127 - T::kBias) << T::kMantissa);
    return {static_cast<uint8_t>(sign | bits)};
  }
}

}  // namespace titan::cuda
